# One replica is busy, another breaks, and no retry is left: the client gets the engine's answer,
# not the router's 502.
replicas 3
set retries-max 1
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 503 {"error":"busy"}
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2a breaks
    close 2a
    log upstream_failed then=error
    to A: HTTP/1.1 503 Service Unavailable; Content-Length: 161; retry-after: 1 "{\"error\":{\"message\":\"No replica answered (2 tried). Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
    release A at 2
counters
    requests 1, retries 1, 5xx 1, refused bad gateway 1, upstream broken 1
