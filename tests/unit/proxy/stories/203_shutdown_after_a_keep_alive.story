# A client that has received only a keep-alive gets an error event when the router stops. Without
# chunks the connection is reset, or its end would pass for the answer's.
replicas 1
set stream-hold 2s

A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a streams
1a says "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
B connects
B sends "POST /v1/chat/completions HTTP/1.0\r\nHost: g\r\nContent-Length: 41\r\n\r\n{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
    connect 1b
    book B at 1
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1b streams
1b says "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
wait 2000
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "41\r\ndata: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n\r\n"
    to B: HTTP/1.1 200 OK; Connection: close "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
the node stops
    to B: "data: {\"error\":{\"message\":\"The router is stopping: the answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n"
    reset B
    close 1b
    log request end=stopped reason=stopping
    to A: "b5\r\ndata: {\"error\":{\"message\":\"The router is stopping: the answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    close A
    close 1a
    log request end=stopped reason=stopping
    release A at 1
    release B at 1
counters
    requests 2, 2xx 2, cut: stopped 2
