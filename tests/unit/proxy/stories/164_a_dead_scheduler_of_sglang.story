# SGLang's server lives for seconds after its scheduler has died, and answers pings and metrics. Its
# health check is sent as soon as no token has arrived for half of watchdog, even shortly after an
# answer. With little traffic only this check shows the death.
replicas 1
probes
engines sglang
set health-interval 1h
set scrape-interval 1h
set watchdog 6s

start
    connect 1a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
    log replica_models_unknown
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 sglang:num_running_reqs 0
wait 50
    to 1a: GET /server_info HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /ping HTTP/1.1
1a answers 200 pong
A connects
A posts /v1/completions {"model":"m","prompt":"a"}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
1b answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
A posts /v1/completions {"model":"m","prompt":"b"}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"b\"}"
    book A at 1
wait 1000
    to 1a: GET /metrics HTTP/1.1
1a answers 200 sglang:num_running_reqs 0
wait 50
    to 1a: GET /ping HTTP/1.1
1a answers 200 pong
wait 1000
    to 1a: GET /ping HTTP/1.1
1a answers 200 pong
wait 400
    to 1a: GET /metrics HTTP/1.1
1a answers 200 sglang:num_running_reqs 0
wait 700
    to 1a: GET /ping HTTP/1.1
1a answers 200 pong
wait 300
    to 1a: GET /health HTTP/1.1
counters
    requests 2, 2xx 1, upstream reused 1
