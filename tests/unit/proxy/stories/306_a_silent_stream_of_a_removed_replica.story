# A replica is removed while a stream is silent there: it is no longer probed. The limit is
# stall-cut.
replicas 2
probes
engines vllm
set health-interval 1h
set scrape-interval 10s
set watchdog 0
set stall-cut 30s

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
1a answers 200 "vllm:num_requests_running 1\nvllm:generation_tokens_total 5000\n"
2a answers 200 "vllm:num_requests_running 1\nvllm:generation_tokens_total 5000\n"
A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 81 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1b streams
1b says "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
1b says "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "71\r\ndata: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\r\n"
replica 1 goes
    log replica_removed
    close 1a
wait 9950
    to 2a: GET /v1/models HTTP/1.1
2a answers 404 {}
wait 50
    to 2a: GET /metrics HTTP/1.1
2a answers 200 "vllm:num_requests_running 0\nvllm:generation_tokens_total 5000\n"
wait 9950
    to 2a: GET /v1/models HTTP/1.1
2a answers 404 {}
wait 50
    to 2a: GET /metrics HTTP/1.1
2a answers 200 "vllm:num_requests_running 0\nvllm:generation_tokens_total 5000\n"
wait 9000
wait 1250
    to 2a: GET /v1/models HTTP/1.1
    close 1b
    log upstream_failed then=error_event
    to A: "ce\r\ndata: {\"error\":{\"message\":\"The replica was silent for too long (stall-cut): its answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    log request end=engine_failed reason=stalled limit=stall-cut
    close A
    release A at 1
