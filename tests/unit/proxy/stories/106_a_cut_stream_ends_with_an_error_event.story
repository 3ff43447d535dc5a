# A stream breaks after its first token. The client gets an error event in the form of its API, then
# the cut, without the last chunk. An unfinished event is ended first; an unfinished field name
# becomes an unknown field.
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
1a breaks
    close 1a
    log upstream_failed then=error_event
    to A: "b1\r\ndata: {\"error\":{\"message\":\"The replica failed: its answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    log request end=engine_failed reason=broken
    close A
    release A at 1
B connects
B posts /v1/chat/completions {"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}
    connect 1b
    book B at 1
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 71 "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"
1b streams
1b says "data: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\ndata: {\"choi"
    to B: HTTP/1.1 200 OK; Transfer-Encoding: chunked "3d\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\ndata: {\"choi\r\n"
1b breaks
    close 1b
    log upstream_failed then=error_event
    to B: "b3\r\n\n\ndata: {\"error\":{\"message\":\"The replica failed: its answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    log request end=engine_failed reason=broken
    close B
    release B at 1
C connects
C posts /v1/chat/completions {"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}
    connect 1c
    book C at 1
1c accepts
    to 1c: POST /v1/chat/completions HTTP/1.1; Content-Length: 71 "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"
1c streams
1c says "data: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\ndat"
    to C: HTTP/1.1 200 OK; Transfer-Encoding: chunked "34\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\ndat\r\n"
1c breaks
    close 1c
    log upstream_failed then=error_event
    to C: "b4\r\n-\n\ndata: {\"error\":{\"message\":\"The replica failed: its answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    log request end=engine_failed reason=broken
    close C
    release C at 1
counters
    requests 3, 2xx 3, cut: engine 3, upstream broken 3
