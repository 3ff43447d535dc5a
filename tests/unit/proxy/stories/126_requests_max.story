# requests-max limits the requests in flight at all replicas together.
replicas 2
set requests-max 1
set queue-max 0

A connects
B connects
A posts /v1/completions {"model":"m","prompt":"a"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
B posts /v1/completions {"model":"m","prompt":"b"}
    to B: HTTP/1.1 429 Too Many Requests; Content-Length: 188; retry-after: 1; x-grapevine-limit: requests-max "{\"error\":{\"message\":\"Every replica is busy and too many requests wait. Provider returned error 429 (too many requests): try again in 1 s.\",\"type\":\"RateLimitError\",\"param\":null,\"code\":429}}"
    log request
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
B posts /v1/completions {"model":"m","prompt":"b"}
    connect 2a
    book B at 2
counters
    requests 3, 2xx 1, 4xx 1, refused queue full 1
