# A process is stopped before its first token. Its health checks time out in less than half of
# watchdog. Repeated checks stay unanswered for long enough: the request moves.
replicas 2
probes
engines vllm
set health-interval 500ms
set health-timeout 700ms
set health-failures 100
set scrape-interval 1h
set watchdog 2s

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
wait 2500
    to 1a: GET /metrics HTTP/1.1
    to 2a: GET /health HTTP/1.1
    connect 1c
    close 1a
    close 2a
    connect 1d
    connect 2b
    close 1c
    connect 1e
    close 1d
    close 2b
    connect 1f
    connect 2c
    log replica_stalled
    close 1b
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2d
    release A at 1
    book A at 2
    close 1e
    connect 1g
counters
    requests 1, retries 1, moved by the watchdog 1
