# Between two pieces of an answer the idle time limit applies: the answer is cut.
replicas 1
set upstream-idle-timeout 3s

A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a streams
wait 2900
1a says "data: {\"text\":\"1\"}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "14\r\ndata: {\"text\":\"1\"}\n\n\r\n"
wait 2950
wait 50
    close 1a
    log upstream_failed then=error_event
    to A: "da\r\ndata: {\"error\":{\"message\":\"The replica was silent for too long (upstream-idle-timeout): its answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    log request end=engine_failed reason=idle limit=upstream-idle-timeout
    close A
    release A at 1
counters
    requests 1, 2xx 1, cut: engine 1, upstream time-outs 1
