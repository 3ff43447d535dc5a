# The client has only whole events. The error follows them, not the rest of an event that it never
# saw.
engines sglang
replicas 1
wait 1000
A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 81 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a streams
1a says "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: {\"choi"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "2f\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n\r\n"
1a breaks
    close 1a
    log upstream_failed then=error_event
    to A: "b1\r\ndata: {\"error\":{\"message\":\"The replica failed: its answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    log request end=engine_failed reason=broken
    close A
    release A at 1
