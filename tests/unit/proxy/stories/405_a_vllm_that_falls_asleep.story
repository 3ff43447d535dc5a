# An operator puts an engine to sleep. Requests without a token move at once, whatever the
# watchdog's limit.
replicas 2
probes
engines vllm
set watchdog 0
set health-interval 1h
set scrape-interval 1s

start
    connect 1a
    connect 2a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 200 {"object":"list","data":[{"id":"m"}]}
2a accepts
    to 2a: GET /health HTTP/1.1
2a answers 200 ok
    log replica_up
    to 2a: GET /v1/models HTTP/1.1
2a answers 200 {"object":"list","data":[{"id":"m"}]}
wait 50
    to 1a: GET /metrics HTTP/1.1
    to 2a: GET /metrics HTTP/1.1
1a answers 200 "vllm:num_requests_running 0\nvllm:engine_sleep_state{sleep_state=\"awake\"} 1\n"
2a answers 200 "vllm:num_requests_running 0\nvllm:engine_sleep_state{sleep_state=\"awake\"} 1\n"
A connects
A posts /v1/chat/completions {"model":"m","messages":[]}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
wait 1000
    to 1a: GET /metrics HTTP/1.1
    to 2a: GET /metrics HTTP/1.1
1a answers 200 "vllm:num_requests_running 0\nvllm:engine_sleep_state{sleep_state=\"awake\"} 0\nvllm:engine_sleep_state{sleep_state=\"weights_offloaded\"} 1\n"
    log replica_restarted
2a answers 200 "vllm:num_requests_running 0\nvllm:engine_sleep_state{sleep_state=\"awake\"} 1\n"
wait 300
    to 1a: GET /v1/models HTTP/1.1
    close 1b
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2b
    release A at 1
    book A at 2
2b accepts
    to 2b: POST /v1/chat/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
2b answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 2
counters
    requests 1, retries 1, 2xx 1, moved by the watchdog 1
outcomes
    1: stalled 1
    2: ok 1
