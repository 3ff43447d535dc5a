# An engine told to stop refuses new requests. This does not count towards retries-max or the budget
# while another replica is healthy. Here the third replica answers, though one retry is allowed.
replicas 3
set retries-max 1
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 500 {"error":{"message":"cannot schedule new futures after shutdown","type":"InternalServerError","param":null,"code":500}}
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2a answers 500 {"error":{"message":"cannot schedule new futures after shutdown","type":"InternalServerError","param":null,"code":500}}
    log upstream_failed then=moved to=10.0.0.3:8000
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
