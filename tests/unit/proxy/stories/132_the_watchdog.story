# A process is stopped: the kernel accepts its connections, but nothing answers. A quick probe stays
# unanswered. After watchdog the replica is avoided, and requests without a token move. The first
# byte shows that it is back.
replicas 2
probes
engines vllm
set health-interval 1h
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
A posts /v1/chat/completions {"model":"m","messages":[]}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
wait 1000
    to 1a: GET /metrics HTTP/1.1
B connects
B posts /v1/chat/completions {"model":"m","messages":[]}
    connect 2b
    book B at 2
2b accepts
    to 2b: POST /v1/chat/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
2b answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 2
wait 1250
    log replica_stalled
    close 1b
    log upstream_failed then=moved to=10.0.0.2:8000
    to 2b: POST /v1/chat/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
    release A at 1
    book A at 2
2b answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 2
wait 50
1a answers 200 vllm:num_requests_running 0
wait 250
    to 1a: GET /metrics HTTP/1.1
    log replica_stall_over
counters
    requests 2, retries 1, 2xx 2, upstream reused 1, moved by the watchdog 1
