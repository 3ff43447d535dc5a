# SGLang reports that a prompt is too long in an event of a stream.
replicas 2
probes
engines sglang

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
A posts /generate {"text":"x","stream":true}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /generate HTTP/1.1; Content-Length: 26 "{\"text\":\"x\",\"stream\":true}"
1b streams
1b says "data: {\"error\":{\"message\":\"The input (54011 tokens) is longer than the model's context length (4096 tokens).\",\"type\":\"invalid_request_error\",\"code\":400,\"retryable\":false}}\n\n"
    close 1b
    connect 2b
    release A at 1
    book A at 2
2b accepts
    to 2b: POST /generate HTTP/1.1; Content-Length: 26 "{\"text\":\"x\",\"stream\":true}"
2b answers 200 {"from":2}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
counters
    requests 1, retries 1, 2xx 1
