# A stream ends correctly in HTTP but without [DONE]: it is incomplete. If the client has received
# nothing, another replica answers. Otherwise the client gets an error event and no last chunk.
replicas 2

A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 71 "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"
1a sends "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/chat/completions HTTP/1.1; Content-Length: 71 "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"
2a streams
2a says "data: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "31\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\n\r\n"
2a is done
    log upstream_failed then=error_event
    to A: "b1\r\ndata: {\"error\":{\"message\":\"The replica failed: its answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    log request end=engine_failed reason=no_terminal
    close A
    release A at 2
counters
    requests 1, retries 1, 2xx 1, cut: engine 1, upstream broken 2
outcomes
    1: broken 1
    2: broken 1
