# The first replica restarted with a longer context, too quickly to be noticed. When the longest
# context rejects a request as too long, the lists are read again, and the first replica gets it. So
# does the next such request.
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
2a answers 200 {"object":"list","data":[{"id":"m","max_model_len":8192}]}
A connects
wait 1000
    to 1a: GET /metrics HTTP/1.1
    to 2a: GET /metrics HTTP/1.1
1a answers 404 {}
    log replica_metrics_unknown
2a answers 404 {}
    log replica_metrics_unknown
A posts /v1/completions {"model":"m","prompt":"x","max_tokens":20000}
    connect 2b
    book A at 2
2b accepts
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 45 "{\"model\":\"m\",\"prompt\":\"x\",\"max_tokens\":20000}"
2b answers 400 {"error":{"message":"This model's maximum context length is 8192 tokens.","code":400}}
    to 1a: GET /v1/models HTTP/1.1
    to 2a: GET /v1/models HTTP/1.1
    release A at 2
1a answers 200 {"object":"list","data":[{"id":"m","max_model_len":65536}]}
2a answers 200 {"object":"list","data":[{"id":"m","max_model_len":8192}]}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 45 "{\"model\":\"m\",\"prompt\":\"x\",\"max_tokens\":20000}"
1b answers 200 {"from":1}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":1}"
    release A at 1
A posts /v1/completions {"model":"m","prompt":"x","max_tokens":20000}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 45 "{\"model\":\"m\",\"prompt\":\"x\",\"max_tokens\":20000}"
    book A at 1
1b answers 200 {"from":1}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":1}"
    release A at 1
outcomes
    1: ok 2
    2: rejected 1
counters
    requests 2, retries 1, 2xx 2, upstream reused 1
