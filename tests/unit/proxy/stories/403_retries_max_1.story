# retries-max 1: of three busy replicas two are asked, and the client gets the second answer.
# Without another replica nothing counts as a retry.
replicas 3
set retries-max 1

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 503 {"error":"busy 1"}
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2a answers 503 {"error":"busy 2"}
    log upstream_failed then=answer
    to A: HTTP/1.1 503 X; Content-Length: 18; retry-after: 1 "{\"error\":\"busy 2\"}"
    log request
    release A at 2
replica 2 goes
    log replica_removed
    close 2a
replica 3 goes
    log replica_removed
A posts /v1/completions {"model":"m","prompt":"y"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
    book A at 1
1a ends
    close 1a
    connect 1b
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
1b ends
    close 1b
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 161 "{\"error\":{\"message\":\"No replica answered (1 tried). Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 1
counters
    requests 2, retries 1, 5xx 2, refused bad gateway 1, upstream broken 1, upstream reused 1, upstream stale 1
