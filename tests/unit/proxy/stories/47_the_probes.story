# A replica is up after its first successful health check; the router then reads its models and
# metrics. It is down after three consecutive failures, and up again after one success.
replicas 1
probes
set scrape-interval 1h
set when-all-down refuse

start
    connect 1a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 200 {"object":"list","data":[{"id":"m","object":"model","owned_by":"vllm"}]}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 vllm:num_requests_running 0
wait 2000
    to 1a: GET /health HTTP/1.1
1a answers 500 broken
    log replica_leaving
wait 2000
    to 1a: GET /health HTTP/1.1
1a answers 500 broken
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1b
    book A at 1
wait 1950
    to 1a: GET /health HTTP/1.1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1b answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
1a answers 500 broken
    log replica_down
    close 1b
A posts /v1/completions {"model":"m","prompt":"x"}
    to A: HTTP/1.1 503 Service Unavailable; Content-Length: 173; retry-after: 1 "{\"error\":{\"message\":\"No replica that serves this request is up. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
wait 2000
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_stays
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
