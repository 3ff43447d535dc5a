# A name may have several addresses. The router uses one until connecting to it fails, then the
# next, under the same booking. The replica has failed when all its addresses have.
replicas 1
names

start
    look up 1
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    to A: HTTP/1.1 503 Service Unavailable; Content-Length: 161; retry-after: 1 "{\"error\":{\"message\":\"No replica answered (1 tried). Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
the name of 1 has 2 addresses
B connects
B posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book B at 1
1a refuses
    close 1a
    connect 1b at address 2
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1b answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 1
C connects
D connects
C posts /v1/completions {"model":"m","prompt":"x"}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
    book C at 1
D posts /v1/completions {"model":"m","prompt":"y"}
    connect 1c at address 2
    book D at 1
1c refuses
    close 1c
    connect 1d
1d refuses
    close 1d
    log upstream_failed then=error
    to D: HTTP/1.1 503 Service Unavailable; Content-Length: 161; retry-after: 1 "{\"error\":{\"message\":\"No replica answered (1 tried). Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
    release D at 1
counters
    requests 4, 2xx 1, 5xx 2, refused no replica 2, connect failures 1, upstream reused 1
