# An engine repeats the prompt and then reports that its context is too short. If a longer context
# may help, the router buffers as much of it as of a good answer.
replicas 2
probes

start
    connect 1a
    connect 2a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 200 {"object":"list","data":[{"id":"m","max_model_len":4096}]}
2a accepts
    to 2a: GET /health HTTP/1.1
2a answers 200 ok
    log replica_up
    to 2a: GET /v1/models HTTP/1.1
2a answers 200 {"object":"list","data":[{"id":"m","max_model_len":131072}]}
A connects
A posts /v1/completions "123456789 "*4000
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 40000 "123456789 123456789 1234... 40000 bytes"
1b sends "HTTP/1.1 400 X\r\nContent-Type: application/json\r\nContent-Length: 20064\r\n\r\n{\"error\":{\"message\":\""
1b sends "word "*4000
1b sends "maximum context length of 4096 tokens\"}}   "
    connect 2b
    release A at 1
    book A at 2
2b accepts
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 40000 "123456789 123456789 1234... 40000 bytes"
2b answers 200 {"from":2}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
outcomes
    1: rejected 1
    2: ok 1
counters
    requests 1, retries 1, 2xx 1, not understood 1
