# With stream-hold 0 every byte is forwarded as it arrives, and no retry follows.
replicas 2
set stream-hold 0
A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a streams
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked
1a says "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
    to A: "41\r\ndata: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n\r\n"
1a breaks
    close 1a
    log upstream_failed then=error_event
    to A: "b1\r\ndata: {\"error\":{\"message\":\"The replica failed: its answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    log request end=engine_failed reason=broken
    close A
    release A at 1
counters
    requests 1, 2xx 1, cut: engine 1, upstream broken 1
