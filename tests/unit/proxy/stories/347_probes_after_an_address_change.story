# Probes have a connection of their own. It also ends when the engine's name has moved.
replicas 1
names
probes
set scrape-interval 1h
set health-interval 6s

start
    look up 1
the name of 1 has the addresses 1
wait 50
    connect 1a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 200 {"object":"list","data":[{"id":"m"}]}
wait 100
    to 1a: GET /metrics HTTP/1.1
1a answers 200 vllm:num_requests_running 0
wait 5000
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1b
    book A at 1
1b refuses
    close 1b
    look up 1
    log upstream_failed then=error
    to A: HTTP/1.1 503 Service Unavailable; Content-Length: 161; retry-after: 1 "{\"error\":{\"message\":\"No replica answered (1 tried). Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
    release A at 1
the name of 1 has the addresses 2 3
wait 1000
    close 1a
    connect 1c at address 2
    connect 1d at address 2
counters
    requests 1, 5xx 1, refused no replica 1, connect failures 1
