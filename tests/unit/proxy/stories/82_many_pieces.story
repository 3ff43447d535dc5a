# An answer in many small chunks of the engine goes out as few writes, none of its bytes lost.
replicas 1

A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a streams
1a says "data: {\"text\":\"x\"}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "14\r\ndata: {\"text\":\"x\"}\n\n\r\n"
1a sends "1\r\na\r\n1\r\nb\r\n"*50
    to A: "3b\r\nabababababababababababababababababababababababababababababa\r\n"
    to A: "29\r\nbabababababababababababababababababababab\r\n"
1a is done
    log upstream_failed
    to A: "7a\r\n-\n\ndata: {\"error\":{\"message\":\"The replica failed: its answer is cut.\",\"type\":\"BadGatewayError\",\"param\":null,\"code\":502}}\n\n\r\n"
    log request
    close A
    release A at 1
