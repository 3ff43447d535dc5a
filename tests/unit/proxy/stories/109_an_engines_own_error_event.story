# An engine's own error event is forwarded unchanged and counts as the replica's error, unless it is
# the request's fault. If the engine breaks after it, the answer is cut without a second error
# event.
replicas 1

A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 71 "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"
1a streams
1a says "data: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "31\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\n\r\n"
1a says "data: {\"error\":{\"message\":\"EngineCore\",\"code\":500}}\n\n"
    to A: "35\r\ndata: {\"error\":{\"message\":\"EngineCore\",\"code\":500}}\n\n\r\n"
1a says "data: [DONE]\n\n"
    to A: "e\r\ndata: [DONE]\n\n\r\n"
1a is done
    to A: "0\r\n\r\n"
    log request end=whole reason=error_event
    release A at 1
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 71 "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"
    book A at 1
1a streams
1a says "data: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "31\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\n\r\n"
1a says "data: {\"error\":{\"message\":\"too long\",\"type\":\"invalid_request_error\",\"code\":400}}\n\n"
    to A: "52\r\ndata: {\"error\":{\"message\":\"too long\",\"type\":\"invalid_request_error\",\"code\":400}}\n\n\r\n"
1a says "data: [DONE]\n\n"
    to A: "e\r\ndata: [DONE]\n\n\r\n"
1a is done
    to A: "0\r\n\r\n"
    log request end=whole reason=error_event
    release A at 1
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 71 "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"
    book A at 1
1a streams
1a says "data: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "31\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\n\r\n"
1a says "data: {\"error\":{\"message\":\"broken\",\"code\":500}}\n\n"
    to A: "31\r\ndata: {\"error\":{\"message\":\"broken\",\"code\":500}}\n\n\r\n"
1a breaks
    close 1a
    log upstream_failed then=cut
    log request end=engine_failed reason=broken
    close A
    release A at 1
outcomes
    1: error 1 broken 1 rejected 1
