# All replicas refuse the connection: 503 with the number of replicas tried, and Retry-After.
replicas 2

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a refuses
    close 1a
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2a
    release A at 1
    book A at 2
2a refuses
    close 2a
    log upstream_failed then=error
    to A: HTTP/1.1 503 Service Unavailable; Content-Length: 161; retry-after: 1 "{\"error\":{\"message\":\"No replica answered (2 tried). Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
    release A at 2
counters
    requests 1, retries 1, 5xx 1, refused no replica 1, connect failures 2
