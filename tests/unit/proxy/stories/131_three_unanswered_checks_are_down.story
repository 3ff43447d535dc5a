# Three health checks without an answer: the replica is silent. A request without a token moves to
# another replica a second after it was sent.
replicas 2
probes
set health-timeout 1s
set health-failures 1
set health-interval 3s
set scrape-interval 1h
set watchdog 0

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
2a answers 404 {}
    log replica_models_unknown
wait 50
    to 1a: GET /metrics HTTP/1.1
    to 2a: GET /metrics HTTP/1.1
1a answers 404 {}
    log replica_metrics_unknown
2a answers 404 {}
    log replica_metrics_unknown
A connects
A posts /v1/chat/completions {"model":"m","messages":[]}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
wait 2950
    to 1a: GET /health HTTP/1.1
    to 2a: GET /health HTTP/1.1
2a answers 200 ok
wait 1000
    close 1a
    log replica_down
    connect 1c
wait 250
    close 1b
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2b
    release A at 1
    book A at 2
2b accepts
    to 2b: POST /v1/chat/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
2b answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 2
