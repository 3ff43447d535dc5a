# A replica's port refused a moment ago, and no replica is known to serve the model. Before the
# client is told so, that replica is probed again. It is back, and lists the model.
replicas 2
probes

start
    connect 1a
    connect 2a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 200 {"object":"list","data":[{"id":"m"}]}
2a accepts
    to 2a: GET /health HTTP/1.1
2a answers 200 ok
    log replica_up
    to 2a: GET /v1/models HTTP/1.1
2a answers 200 {"object":"list","data":[{"id":"m"}]}
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1b
    book A at 1
1b refuses
    close 1b
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2b
    release A at 1
    book A at 2
2b accepts
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2b answers 200 {"from":2}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
wait 50
    to 1a: GET /health HTTP/1.1
    to 2a: GET /metrics HTTP/1.1
1a ends
    close 1a
    connect 1c
1c refuses
    close 1c
    log replica_down
2a answers 404 {}
    log replica_metrics_unknown
wait 50
    connect 1d
1d refuses
    close 1d
wait 200
A posts /v1/completions {"model":"new","prompt":"x"}
    to 2a: GET /v1/models HTTP/1.1
2a answers 200 {"object":"list","data":[{"id":"m"}]}
wait 250
    connect 1e
1e accepts
    to 1e: GET /health HTTP/1.1
1e answers 200 ok
    log replica_up
    to 1e: GET /v1/models HTTP/1.1
1e answers 200 {"object":"list","data":[{"id":"new"}]}
    connect 1f
    book A at 1
1f accepts
    to 1f: POST /v1/completions HTTP/1.1; Content-Length: 28 "{\"model\":\"new\",\"prompt\":\"x\"}"
1f answers 200 {"from":1}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":1}"
    release A at 1
