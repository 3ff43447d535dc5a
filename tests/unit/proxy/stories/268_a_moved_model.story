# The only replica that listed the model denies it. All are asked for their lists: another has it
# now.
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
2a answers 200 {"object":"list","data":[{"id":"n"}]}
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
1b answers 404 {"error":{"message":"The model `m` does not exist.","type":"NotFoundError","param":"model","code":404}}
    to 1a: GET /v1/models HTTP/1.1
    to 2a: GET /v1/models HTTP/1.1
    release A at 1
1a answers 200 {"object":"list","data":[{"id":"o"}]}
2a answers 200 {"object":"list","data":[{"id":"m"}]}
    connect 2b
    book A at 2
2b accepts
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2b answers 200 {"from":2}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
A posts /v1/completions {"model":"o","prompt":"x"}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"o\",\"prompt\":\"x\"}"
    book A at 1
1b answers 404 {"error":{"message":"The model `o` does not exist.","type":"NotFoundError","param":"model","code":404}}
    release A at 1
wait 250
    to 1a: GET /v1/models HTTP/1.1
    to 2a: GET /v1/models HTTP/1.1
1a answers 200 {"object":"list","data":[]}
2a answers 200 {"object":"list","data":[{"id":"m"}]}
    to A: HTTP/1.1 404 Not Found; Content-Length: 103 "{\"error\":{\"message\":\"The model `o` does not exist.\",\"type\":\"NotFoundError\",\"param\":\"model\",\"code\":404}}"
counters
    requests 2, retries 1, 2xx 1, 4xx 1, invalid: model 1, upstream reused 1
