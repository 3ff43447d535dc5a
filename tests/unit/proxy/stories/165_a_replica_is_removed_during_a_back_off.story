# The third attempt backs off. Its replica is removed meanwhile: the request goes to another
# replica, and none is blamed.
replicas 4

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 503 {}
    log upstream_failed then=moved to=10.0.0.4:8000
    connect 4a
    release A at 1
    book A at 4
4a accepts
    to 4a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
4a answers 503 {}
    log upstream_failed then=moved to=10.0.0.2:8000
    release A at 4
    book A at 2
replica 2 goes
    log replica_removed
wait 200
    connect 3a
    release A at 2
    book A at 3
3a accepts
    to 3a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
3a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 3
counters
    requests 1, retries 2, 2xx 1
