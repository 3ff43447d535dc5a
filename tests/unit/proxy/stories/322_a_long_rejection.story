# A rejection longer than the buffer: an engine repeats its input, or a proxy sends a page. Its
# beginning decides. It is checked elsewhere and counts like any other.
replicas 2
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a sends "HTTP/1.1 401 X\r\nContent-Type: application/json\r\nContent-Length: 20000\r\n\r\n{\"error\":{\"message\":\"no key for x"
1a sends "x"*8100
1a sends "x"*100
    close 1a
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2a answers 200 {"from":2}
    log replica_rejects
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
outcomes
    1: rejected 1
    2: ok 1
# The next request goes where it was accepted.
A posts /v1/completions {"model":"m","prompt":"y"}
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
    book A at 2
2a answers 200 {"from":2}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
outcomes
    1: rejected 1
    2: ok 2
counters
    requests 2, retries 1, 2xx 2, upstream reused 1
