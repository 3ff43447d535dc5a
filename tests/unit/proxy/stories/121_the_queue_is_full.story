# Beyond queue-max: 429, with the expected time until a place is free.
replicas 1
set replica-requests-max 1
set queue-max 1

A connects
B connects
C connects
A posts /v1/completions {"model":"m","prompt":"a"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
B posts /v1/completions {"model":"m","prompt":"b"}
wait 7000
C posts /v1/completions {"model":"m","prompt":"c"}
    to C: HTTP/1.1 429 Too Many Requests; Content-Length: 188; retry-after: 7; x-grapevine-limit: queue-max "{\"error\":{\"message\":\"Every replica is busy and too many requests wait. Provider returned error 429 (too many requests): try again in 7 s.\",\"type\":\"RateLimitError\",\"param\":null,\"code\":429}}"
    log request
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"b\"}"
    release A at 1
    book B at 1
1a answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 1
counters
    requests 3, 2xx 2, 4xx 1, refused queue full 1, upstream reused 1
