# The replica with a longer context is down. It should return, so the client gets Retry-After.
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
2a answers 200 {"object":"list","data":[{"id":"m","max_model_len":131072}]}
A connects
replica 2 goes
    log replica_removed
    close 2a
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1b answers 400 {"error":{"message":"This model's maximum context length is 4096 tokens.","code":400}}
    to A: HTTP/1.1 400 X; Content-Length: 86 "{\"error\":{\"message\":\"This model's maximum context length is 4096 tokens.\",\"code\":400}}"
    log request
    release A at 1
counters
    requests 1, 4xx 1
