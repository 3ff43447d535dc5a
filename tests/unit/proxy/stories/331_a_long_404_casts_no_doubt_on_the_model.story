# An engine without a list answered for a model. A later long 404 goes to the client unchanged. It
# casts no doubt on the model, and no list is read, because only its beginning could be buffered.
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
1b sends "HTTP/1.1 404 Not Found\r\nContent-Length: 9000\r\n\r\n"
1b sends "page\n"*1800
    to A: HTTP/1.1 404 Not Found; Content-Length: 9000 "page\npage\npage\npage\npage... 9000 bytes"
    log request
    release A at 1
outcomes
    1: ok 1 not sent 1 rejected 1
    2:
