# An engine without a list answered for a model, so it is known to serve it. Then a web page
# replaces it and answers 404 to everything. This is no evidence about the model, but the earlier
# knowledge no longer counts, and the lists are read before the client gets the 404: another replica
# has the model by now.
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
2a answers 200 {"object":"list","data":[{"id":"m"},{"id":"own"}]}
    connect 2b
    book A at 2
2b accepts
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 28 "{\"model\":\"own\",\"prompt\":\"x\"}"
2b answers 200 {"from":2}
    log replica_rejects
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
A posts /v1/completions {"model":"own","prompt":"x"}
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 28 "{\"model\":\"own\",\"prompt\":\"x\"}"
    book A at 2
2b answers 200 {"from":2}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
