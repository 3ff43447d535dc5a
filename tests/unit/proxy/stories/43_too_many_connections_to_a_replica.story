# upstream-connections-max is our own limit: the replica is not blamed, another one is tried, and
# then there is a 503.
replicas 2
set upstream-connections-max 1

A connects
B connects
C connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
B posts /v1/completions {"model":"m","prompt":"y"}
    connect 2a
    book B at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
C posts /v1/completions {"model":"m","prompt":"z"}
    to C: HTTP/1.1 503 Service Unavailable; Content-Length: 113; retry-after: 1 "{\"error\":{\"message\":\"Too many requests are under way.\",\"type\":\"ServiceUnavailableError\",\"param\":null,\"code\":503}}"
    log request
counters
    requests 3, 5xx 1, upstream full 2
