# The router stops while requests are open: they are cut.
replicas 1

A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a streams
1a says "data: {\"text\":\"1\"}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "14\r\ndata: {\"text\":\"1\"}\n\n\r\n"
the node stops
    to A: "b5\r\ndata: {\"error\":{\"message\":\"The router is stopping: the answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    close A
    close 1a
    log request end=stopped reason=stopping
    release A at 1
