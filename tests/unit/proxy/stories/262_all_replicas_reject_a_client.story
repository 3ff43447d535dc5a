# Every replica rejects this client's requests. At first each is tried twice, and the client gets
# the first answer. Soon the client is known for it, and gets a replica's answer at once.
replicas 2
A connects
A posts /v1/completions {"model":"m","prompt":1}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 24 "{\"model\":\"m\",\"prompt\":1}"
1a answers 422 {"error":"first"}
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 24 "{\"model\":\"m\",\"prompt\":1}"
2a answers 400 {"error":"second"}
    to A: HTTP/1.1 422 X; Content-Length: 17 "{\"error\":\"first\"}"
    log request
    release A at 2
A posts /v1/completions {"model":"m","prompt":1}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 24 "{\"model\":\"m\",\"prompt\":1}"
    book A at 1
1a answers 422 {"error":"first"}
    to A: HTTP/1.1 422 X; Content-Length: 17 "{\"error\":\"first\"}"
    log request
    release A at 1
A posts /v1/completions {"model":"m","prompt":1}
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 24 "{\"model\":\"m\",\"prompt\":1}"
    book A at 2
2a answers 422 {"error":"first"}
    to A: HTTP/1.1 422 X; Content-Length: 17 "{\"error\":\"first\"}"
    log request
    release A at 2
outcomes
    1: rejected 2
    2: rejected 2
counters
    requests 3, retries 1, 4xx 3, upstream reused 2
