# A refused port means a dead engine: the replica is down at once and idle connections close.
# Answers that have been silent for 5 s end, since a killed engine may leave them hanging. An answer
# that still moves goes on.
replicas 1
probes
set health-interval 6s
set health-timeout 1s
set upstream-keepalive 10s
set watchdog 0
set scrape-interval 1h

start
    connect 1a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
    log replica_models_unknown
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
    log replica_metrics_unknown
1a ends
    close 1a
A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 81 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1b streams
B connects
B posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1c
    book B at 1
1c accepts
    to 1c: POST /v1/chat/completions HTTP/1.1; Content-Length: 81 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1c streams
C connects
C posts /v1/completions {"model":"m","prompt":"x"}
    connect 1d
    book C at 1
1d accepts
    to 1d: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1d answers 200 {}
    to C: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release C at 1
wait 5900
1b says "data: 1\n\n"
wait 50
    connect 1e
1e refuses
    close 1e
    log replica_down
    close 1d
wait 250
    connect 1f
    close 1c
    log upstream_failed then=error
    to B: HTTP/1.1 502 Bad Gateway; Content-Length: 161 "{\"error\":{\"message\":\"No replica answered (1 tried). Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release B at 1
counters
    requests 3, 2xx 1, 5xx 1, refused bad gateway 1, upstream broken 1
