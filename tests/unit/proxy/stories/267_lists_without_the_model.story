# The lists have been read, or do not arrive: the model is unknown.
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
A posts /v1/completions {"model":"typo","prompt":"x"}
    to 1a: GET /v1/models HTTP/1.1
    to 2a: GET /v1/models HTTP/1.1
1a answers 200 {"object":"list","data":[{"id":"m"}]}
wait 1000
    to A: HTTP/1.1 404 Not Found; Content-Length: 106 "{\"error\":{\"message\":\"The model `typo` does not exist.\",\"type\":\"NotFoundError\",\"param\":\"model\",\"code\":404}}"
    connect 2b
    to 1a: GET /health HTTP/1.1
counters
    requests 1, 4xx 1, invalid: model 1
