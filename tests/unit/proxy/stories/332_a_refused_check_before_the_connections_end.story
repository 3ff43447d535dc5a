# A prompt kills two engines. Each engine's refused check arrives before the end of its connection,
# as after a lost packet, and the watchdog looks in between. Both count as deaths: no third engine
# gets the prompt.
replicas 3
set policy round_robin
set health-interval 1h
set scrape-interval 1h
set watchdog 2s
probes

start
    connect 1a
    connect 2a
    connect 3a
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
3a accepts
    to 3a: GET /health HTTP/1.1
3a answers 200 ok
    log replica_up
    to 3a: GET /v1/models HTTP/1.1
3a answers 404 {}
    log replica_models_unknown
wait 50
    to 1a: GET /metrics HTTP/1.1
    to 2a: GET /metrics HTTP/1.1
    to 3a: GET /metrics HTTP/1.1
1a answers 404 {}
    log replica_metrics_unknown
2a answers 404 {}
    log replica_metrics_unknown
3a answers 404 {}
    log replica_metrics_unknown
A connects
A posts /v1/completions {"model":"m","prompt":"a"}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
wait 700
    to 1a: GET /health HTTP/1.1
1a breaks
    close 1a
    connect 1c
1c refuses
    close 1c
    log replica_down
wait 60
    connect 1d
1b breaks
    close 1b
    log upstream_failed then=moved to=10.0.0.3:8000
    release A at 1
    book A at 3
wait 300
    connect 3b
3b accepts
    to 3b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
wait 700
    close 1d
    connect 1e
    to 3a: GET /health HTTP/1.1
    close 1e
    connect 1f
3a breaks
    close 3a
    connect 3c
3c refuses
    close 3c
    log replica_down
wait 60
    connect 3d
3b breaks
    close 3b
    log poison replicas=10.0.0.1:8000,10.0.0.3:8000
    log upstream_failed then=refused
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 132; x-should-retry: false "{\"error\":{\"message\":\"Engines died after this request. It is not sent to another.\",\"type\":\"BadGatewayError\",\"param\":null,\"code\":502}}"
    log request
    release A at 3
