# One replica is up without a model list, so it may serve any model. A model unknown to all does not
# go there before the others' lists have been read. One has the model by now and gets the request:
# the first is a web page that answers everything, not an engine.
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
1a answers 404 {}
    log replica_models_unknown
2a accepts
    to 2a: GET /health HTTP/1.1
2a answers 200 ok
    log replica_up
    to 2a: GET /v1/models HTTP/1.1
2a answers 200 {"object":"list","data":[{"id":"m2"}]}
A connects
wait 1000
    to 1a: GET /metrics HTTP/1.1
    to 2a: GET /metrics HTTP/1.1
1a answers 404 {}
    log replica_metrics_unknown
2a answers 404 {}
    log replica_metrics_unknown
A posts /v1/completions {"model":"m9","prompt":"x"}
    to 1a: GET /v1/models HTTP/1.1
    to 2a: GET /v1/models HTTP/1.1
1a answers 404 {}
2a answers 200 {"object":"list","data":[{"id":"m9"}]}
    connect 2b
    book A at 2
2b accepts
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m9\",\"prompt\":\"x\"}"
2b answers 200 {"from":2}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
