# No replica is known to serve the model. Before the client is told so, all replicas that are up are
# asked for their lists. One has the model by now.
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
1a answers 200 {"object":"list","data":[{"id":"m","max_model_len":4096}]}
2a accepts
    to 2a: GET /health HTTP/1.1
2a answers 200 ok
    log replica_up
    to 2a: GET /v1/models HTTP/1.1
2a answers 200 {"object":"list","data":[{"id":"m","max_model_len":4096}]}
A connects
wait 1000
    to 1a: GET /metrics HTTP/1.1
    to 2a: GET /metrics HTTP/1.1
1a answers 404 {}
    log replica_metrics_unknown
2a answers 404 {}
    log replica_metrics_unknown
A posts /v1/completions {"model":"new","prompt":"x"}
    to 1a: GET /v1/models HTTP/1.1
    to 2a: GET /v1/models HTTP/1.1
1a answers 200 {"object":"list","data":[{"id":"m"}]}
2a answers 200 {"object":"list","data":[{"id":"m"},{"id":"new"}]}
    connect 2b
    book A at 2
2b accepts
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 28 "{\"model\":\"new\",\"prompt\":\"x\"}"
2b answers 200 {"from":2}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
A posts /v1/completions {"model":"typo","prompt":"x"}
wait 250
    to 1a: GET /v1/models HTTP/1.1
    to 2a: GET /v1/models HTTP/1.1
1a answers 200 {"object":"list","data":[{"id":"m"}]}
2a answers 200 {"object":"list","data":[{"id":"m"},{"id":"new"}]}
    to A: HTTP/1.1 404 Not Found; Content-Length: 106 "{\"error\":{\"message\":\"The model `typo` does not exist.\",\"type\":\"NotFoundError\",\"param\":\"model\",\"code\":404}}"
counters
    requests 2, 2xx 1, 4xx 1, invalid: model 1
