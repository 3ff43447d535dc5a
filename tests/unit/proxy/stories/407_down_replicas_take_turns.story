# All replicas are down, and requests are tried anyway: each goes to one replica, once, in turns.
# The first that answers is up again.
replicas 2
probes
set health-interval 60s
set health-failures 1

start
    connect 1a
    connect 2a
1a refuses
    close 1a
    log replica_down
2a refuses
    close 2a
    log replica_down
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1b ends
    close 1b
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 161 "{\"error\":{\"message\":\"No replica answered (1 tried). Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 1
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 2b
    book A at 2
2b accepts
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2b ends
    close 2b
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 161 "{\"error\":{\"message\":\"No replica answered (1 tried). Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 2
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1c
    book A at 1
1c accepts
    to 1c: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1c answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
A posts /v1/completions {"model":"m","prompt":"x"}
    to 1c: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
    book A at 1
counters
    requests 4, 2xx 1, 5xx 2, refused bad gateway 2, upstream broken 2, upstream reused 1
outcomes
    1: ok 1 broken 1
    2: broken 1
