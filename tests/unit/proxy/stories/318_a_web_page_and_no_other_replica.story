# The same, and no replica has the model: the client gets the first answer, not "model does not
# exist". The next request reads the lists at once, and gets that answer too.
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
2a answers 200 {"object":"list","data":[{"id":"m"}]}
A connects
wait 1000
    to 1a: GET /metrics HTTP/1.1
    to 2a: GET /metrics HTTP/1.1
1a answers 404 {}
    log replica_metrics_unknown
2a answers 404 {}
    log replica_metrics_unknown
A posts /v1/completions {"model":"own","prompt":"x"}
    to 1a: GET /v1/models HTTP/1.1
    to 2a: GET /v1/models HTTP/1.1
1a answers 404 {}
2a answers 200 {"object":"list","data":[{"id":"m"}]}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 28 "{\"model\":\"own\",\"prompt\":\"x\"}"
1b answers 200 {"from":1}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":1}"
    release A at 1
wait 250
A posts /v1/completions {"model":"own","prompt":"x"}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 28 "{\"model\":\"own\",\"prompt\":\"x\"}"
    book A at 1
1b answers 404 {"detail":"Not Found"}
    to 1a: GET /v1/models HTTP/1.1
    to 2a: GET /v1/models HTTP/1.1
    release A at 1
1a answers 404 {}
2a answers 200 {"object":"list","data":[{"id":"m"}]}
    to A: HTTP/1.1 404 X; Content-Length: 22 "{\"detail\":\"Not Found\"}"
    log request
wait 250
A posts /v1/completions {"model":"own","prompt":"x"}
    to 1a: GET /v1/models HTTP/1.1
    to 2a: GET /v1/models HTTP/1.1
1a answers 404 {}
2a answers 200 {"object":"list","data":[{"id":"m"}]}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 28 "{\"model\":\"own\",\"prompt\":\"x\"}"
    book A at 1
1b answers 404 {"detail":"Not Found"}
    to A: HTTP/1.1 404 X; Content-Length: 22 "{\"detail\":\"Not Found\"}"
    log request
    release A at 1
