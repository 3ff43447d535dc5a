# An engine answers 503: the router asks another replica. If all are busy, the client gets the last
# engine's answer.
replicas 2

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 503 {"error":"busy 1"}
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2a answers 503 {"error":"busy 2"}
    log upstream_failed then=answer
    to A: HTTP/1.1 503 X; Content-Length: 18; retry-after: 1 "{\"error\":\"busy 2\"}"
    log request
    release A at 2
A posts /v1/completions {"model":"m","prompt":"y"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
    book A at 1
1a answers 503 {"error":"busy 1"}
    log upstream_failed then=moved to=10.0.0.2:8000
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
    release A at 1
    book A at 2
2a answers 200 {"from":2}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
counters
    requests 2, retries 2, 2xx 1, 5xx 1, upstream reused 2
