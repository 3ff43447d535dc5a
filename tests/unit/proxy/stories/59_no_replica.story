# There are no replicas: 503 at once, with Retry-After of a second.
replicas 1
probes
set when-all-down refuse

start
    connect 1a
A connects
1a refuses
    close 1a
    log replica_down
A posts /v1/completions {"model":"m","prompt":"x"}
    to A: HTTP/1.1 503 Service Unavailable; Content-Length: 173; retry-after: 1 "{\"error\":{\"message\":\"No replica that serves this request is up. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
A gets /health
    to A: HTTP/1.1 503 Service Unavailable; Content-Length: 123; retry-after: 1 "{\"error\":{\"message\":\"The router is not ready: no replica is up.\",\"type\":\"ServiceUnavailableError\",\"param\":null,\"code\":503}}"
counters
    requests 2, 5xx 2, refused no replica 2
