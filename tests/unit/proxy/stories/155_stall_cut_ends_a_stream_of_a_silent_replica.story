# A stream has its first token when the engine's process is stopped. Health checks are rare, so the
# replica is not down; but nothing arrives, not even the answer to a probe. After stall-cut the
# client gets an error event that names the setting, and the stream is cut.
replicas 2
probes
engines vllm
set health-interval 1h
set scrape-interval 1h
set watchdog 2s
set health-timeout 4s
set stall-cut 15s

start
    connect 1a
    connect 2a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
    log replica_models_unknown
2a accepts
    to 2a: GET /health HTTP/1.1
2a answers 200 ok
    log replica_up
    to 2a: GET /v1/models HTTP/1.1
2a answers 404 {}
    log replica_models_unknown
wait 50
    to 1a: GET /metrics HTTP/1.1
    to 2a: GET /metrics HTTP/1.1
1a answers 200 vllm:num_requests_running 0
2a answers 200 vllm:num_requests_running 0
A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 81 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1b streams
1b says "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "30\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\r\n"
wait 14000
    to 1a: GET /metrics HTTP/1.1
    log replica_stalled
    close 1a
    connect 1c
    close 1c
    connect 1d
    connect 1e
    to 2a: GET /v1/models HTTP/1.1
    close 1d
    connect 1f
    close 1e
    close 2a
wait 1250
    close 1b
    log upstream_failed then=error_event
    to A: "ce\r\ndata: {\"error\":{\"message\":\"The replica was silent for too long (stall-cut): its answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    log request end=engine_failed reason=stalled limit=stall-cut
    close A
    release A at 1
counters
    requests 1, 2xx 1, cut: engine 1
