# Both replicas list a context that fits the request, and the first rejects it as too long: its list
# is outdated. The list is read at once, and the request is tried at the other replica.
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
1a answers 200 {"object":"list","data":[{"id":"m","max_model_len":131072}]}
2a accepts
    to 2a: GET /health HTTP/1.1
2a answers 200 ok
    log replica_up
    to 2a: GET /v1/models HTTP/1.1
2a answers 200 {"object":"list","data":[{"id":"m","max_model_len":131072}]}
A connects
wait 1000
    to 1a: GET /metrics HTTP/1.1
    to 2a: GET /metrics HTTP/1.1
1a answers 404 {}
    log replica_metrics_unknown
2a answers 404 {}
    log replica_metrics_unknown
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1b answers 400 {"error":{"message":"This model's maximum context length is 5 tokens. However, your prompt contains at least 6 input tokens","type":"BadRequestError","param":"input_tokens","code":400}}
    connect 2b
    to 1a: GET /v1/models HTTP/1.1
    release A at 1
    book A at 2
1a answers 200 {"object":"list","data":[{"id":"m","max_model_len":5}]}
2b accepts
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2b answers 200 {"from":2}
    log replica_rejects
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
outcomes
    1: rejected 1
    2: ok 1
counters
    requests 1, retries 1, 2xx 1
