# After a keep-alive the client has a 200, so an error is sent as an event and a cut.
replicas 2
set stream-hold 2s
A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a streams
1a says "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
wait 2000
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "41\r\ndata: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n\r\n"
1a breaks
    close 1a
    log upstream_failed then=moved to=10.0.0.2:8000
    release A at 1
    book A at 2
wait 250
    connect 2a
2a accepts
    to 2a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
2a answers 503 {"error":"busy"}
    log upstream_failed then=answer
    to A: "cb\r\ndata: {\"error\":{\"message\":\"The replica that should continue the answer returned status 503. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    log request end=engine_failed reason=no_replica
    close A
    release A at 2
counters
    requests 1, retries 1, 2xx 1, cut: engine 1, upstream broken 1
