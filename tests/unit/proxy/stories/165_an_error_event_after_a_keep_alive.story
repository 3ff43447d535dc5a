# A keep-alive has committed a response. The error event that replaces its first token goes to the
# client, and the replica is blamed as if it had been held back.
replicas 2
set stream-hold 1000ms
A connects
A posts /v1/responses {"model":"m","stream":true,"input":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/responses HTTP/1.1; Content-Length: 39 "{\"model\":\"m\",\"stream\":true,\"input\":\"x\"}"
1a streams
1a says "event: response.created\ndata: {\"type\":\"response.created\"}\n\n"
wait 1100
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "3b\r\nevent: response.created\ndata: {\"type\":\"response.created\"}\n\n\r\n"
1a says "event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"boom\"}\n\n"
    to A: "4c\r\nevent: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"boom\"}\n\n\r\n"
1a is done
    to A: "0\r\n\r\n"
    log request end=whole reason=error_event
    release A at 1
outcomes
    1: error 1
    2:
