# Without a queue a request is refused at once, and the error names the limit; the replica is not
# blamed.
replicas 1
set replica-requests-max 1
set queue-max 0

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
B connects
B posts /v1/completions {"model":"m","prompt":"x"}
    to B: HTTP/1.1 429 Too Many Requests; Content-Length: 188; retry-after: 1; x-grapevine-limit: replica-requests-max "{\"error\":{\"message\":\"Every replica is busy and too many requests wait. Provider returned error 429 (too many requests): try again in 1 s.\",\"type\":\"RateLimitError\",\"param\":null,\"code\":429}}"
    log request
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
B posts /v1/completions {"model":"m","prompt":"x"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
    book B at 1
counters
    requests 3, 2xx 1, 4xx 1, refused queue full 1, upstream reused 1
outcomes
    1: ok 1
