# If no other replica has a longer context, and none has listed one since, the client gets the
# engine's answer.
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
A posts /v1/completions {"model":"m","prompt":"x","max_tokens":5000}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 44 "{\"model\":\"m\",\"prompt\":\"x\",\"max_tokens\":5000}"
1b answers 400 {"error":{"message":"This model's maximum context length is 4096 tokens.","code":400}}
    to 1a: GET /v1/models HTTP/1.1
    to 2a: GET /v1/models HTTP/1.1
    release A at 1
1a answers 200 {"object":"list","data":[{"id":"m","max_model_len":4096}]}
2a answers 200 {"object":"list","data":[{"id":"m","max_model_len":4096}]}
    to A: HTTP/1.1 400 X; Content-Length: 86 "{\"error\":{\"message\":\"This model's maximum context length is 4096 tokens.\",\"code\":400}}"
    log request
counters
    requests 1, 4xx 1
