# The only replica that lists the model is down, and a web page at another address is up. The client
# does not get its 404: the model is served once the first replica is back.
replicas 2
probes

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
2a answers 200 {"object":"list","data":[{"id":"m"}]}
A connects
wait 1000
    to 1a: GET /metrics HTTP/1.1
    to 2a: GET /metrics HTTP/1.1
1a answers 404 {}
    log replica_metrics_unknown
2a ends
    close 2a
    connect 2b
wait 1000
    connect 2c
    to 1a: GET /health HTTP/1.1
2b refuses
    close 2b
2c refuses
    close 2c
    log replica_down
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1b answers 404 {"detail":"Not Found"}
    to A: HTTP/1.1 503 Service Unavailable; Content-Length: 171; retry-after: 1 "{\"error\":{\"message\":\"No replica that serves this model is up. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
    release A at 1
