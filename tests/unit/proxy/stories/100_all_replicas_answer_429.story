# If every replica answers 429, the client gets it unchanged, with Retry-After. A replica that
# reports being busy gets no more requests for a second.
replicas 2
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 429 {"error":"too many"}
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2a sends "HTTP/1.1 429 X\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\n{}"
    log upstream_failed then=answer
    to A: HTTP/1.1 429 X; Retry-After: 7; Content-Length: 2 "{}"
    log request
    release A at 2
A posts /v1/completions {"model":"m","prompt":"y"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
    book A at 1
1a answers 502 {"error":"gateway"}
    log upstream_failed then=moved to=10.0.0.2:8000
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
    release A at 1
    book A at 2
2a answers 504 {"error":"gateway"}
    log upstream_failed then=answer
    to A: HTTP/1.1 504 X; Content-Length: 19 "{\"error\":\"gateway\"}"
    log request
    release A at 2
counters
    requests 2, retries 2, 4xx 1, 5xx 1, upstream reused 2
