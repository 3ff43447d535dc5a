# After the first byte the router cannot retry. It forwards what it has received, without the last
# chunk, so that the client sees the cut.
replicas 2

A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a streams
1a says "data: {\"text\":\"1\"}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "14\r\ndata: {\"text\":\"1\"}\n\n\r\n"
1a breaks
    close 1a
    log upstream_failed then=error_event
    to A: "b1\r\ndata: {\"error\":{\"message\":\"The replica failed: its answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    log request end=engine_failed reason=broken
    close A
    release A at 1
counters
    requests 1, 2xx 1, cut: engine 1, upstream broken 1
