# Two replicas serve a base and an adapter, and one of them rejects the adapter. It is avoided only
# for the adapter. It keeps the base, whose answers are no trial for the adapter.
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
1a answers 200 {"object":"list","data":[{"id":"m"},{"id":"ad"}]}
2a accepts
    to 2a: GET /health HTTP/1.1
2a answers 200 ok
    log replica_up
    to 2a: GET /v1/models HTTP/1.1
2a answers 200 {"object":"list","data":[{"id":"m"},{"id":"ad"}]}
A connects
B connects
wait 1000
    to 1a: GET /metrics HTTP/1.1
    to 2a: GET /metrics HTTP/1.1
1a answers 404 {}
    log replica_metrics_unknown
2a answers 404 {}
    log replica_metrics_unknown
A posts /v1/completions {"model":"ad","prompt":"x"}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"ad\",\"prompt\":\"x\"}"
1b answers 400 {"error":{"message":"rank too large"}}
    connect 2b
    release A at 1
    book A at 2
2b accepts
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"ad\",\"prompt\":\"x\"}"
2b answers 200 {"from":2}
    log replica_rejects
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
A posts /v1/completions {"model":"ad","prompt":"y"}
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"ad\",\"prompt\":\"y\"}"
    book A at 2
B posts /v1/completions {"model":"m","prompt":"z"}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"z\"}"
    book B at 1
1b answers 200 {"from":1}
    to B: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":1}"
    release B at 1
2b answers 200 {"from":2}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
A posts /v1/completions {"model":"ad","prompt":"w"}
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"ad\",\"prompt\":\"w\"}"
    book A at 2
2b answers 200 {"from":2}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
counters
    requests 4, retries 1, 2xx 4, upstream reused 3
