# The first replica answered 500 to a request that the second one served. When the second fails the
# next request too, the first cannot decide the blame: a third replica is asked.
replicas 3
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 500 {"error":"boom 1"}
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2a answers 200 {"from":2}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
outcomes
    1: error 1 in doubt 1
    2: ok 1
    3:
A posts /v1/completions {"model":"m","prompt":"y"}
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
    book A at 2
2a answers 500 {"error":"boom 2"}
    log upstream_failed then=moved to=10.0.0.1:8000
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
    release A at 2
    book A at 1
1a answers 500 {"error":"boom 1"}
    log upstream_failed then=moved to=10.0.0.3:8000
    release A at 1
    book A at 3
wait 300
    connect 3a
3a accepts
    to 3a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
3a answers 200 {"from":3}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":3}"
    release A at 3
outcomes
    1: error 2 in doubt 1
    2: ok 1 error 1 in doubt 1
    3: ok 1
counters
    requests 2, retries 3, 2xx 2, upstream reused 2
