# A connection that is not established in time counts as refused.
replicas 2
set upstream-connect-timeout 2s

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
wait 1950
wait 50
    close 1a
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 2
counters
    requests 1, retries 1, 2xx 1, connect failures 1, upstream time-outs 1
