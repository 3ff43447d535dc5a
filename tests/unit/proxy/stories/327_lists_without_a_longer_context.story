# SGLang reports in an event of a stream that the prompt is too long. The lists are read again. If
# they show no longer context, or a list does not arrive, the client gets the engine's answer.
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
2a answers 200 {"object":"list","data":[{"id":"m","max_model_len":8192}]}
A connects
wait 1000
    to 1a: GET /metrics HTTP/1.1
    to 2a: GET /metrics HTTP/1.1
1a answers 404 {}
    log replica_metrics_unknown
2a answers 404 {}
    log replica_metrics_unknown
A posts /generate {"text":"x","stream":true,"sampling_params":{"max_new_tokens":20000}}
    connect 2b
    book A at 2
2b accepts
    to 2b: POST /generate HTTP/1.1; Content-Length: 69 "{\"text\":\"x\",\"stream\":true,\"sampling_params\":{\"max_new_tokens\":20000}}"
2b streams
2b says "data: {\"error\":{\"message\":\"The input (54011 tokens) is longer than the model's context length (8192 tokens).\",\"type\":\"invalid_request_error\",\"code\":400,\"retryable\":false}}\n\n"
    close 2b
    to 1a: GET /v1/models HTTP/1.1
    to 2a: GET /v1/models HTTP/1.1
    release A at 2
1a answers 200 {"object":"list","data":[{"id":"m","max_model_len":4096}]}
2a answers 200 {"object":"list","data":[{"id":"m","max_model_len":8192}]}
    to A: HTTP/1.1 400 Bad Request; Content-Length: 160 "{\"error\":{\"message\":\"The input (54011 tokens) is longer than the model's context length (8192 tokens).\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":400}}"
    log request
wait 1000
    to 1a: GET /health HTTP/1.1
    to 2a: GET /health HTTP/1.1
A posts /generate {"text":"x","stream":true,"sampling_params":{"max_new_tokens":20000}}
    connect 2c
    book A at 2
2c accepts
    to 2c: POST /generate HTTP/1.1; Content-Length: 69 "{\"text\":\"x\",\"stream\":true,\"sampling_params\":{\"max_new_tokens\":20000}}"
2c streams
2c says "data: {\"error\":{\"message\":\"The input (54011 tokens) is longer than the model's context length (8192 tokens).\",\"type\":\"invalid_request_error\",\"code\":400,\"retryable\":false}}\n\n"
    connect 1b
    connect 2d
    close 2c
    release A at 2
wait 2000
    to A: HTTP/1.1 400 Bad Request; Content-Length: 160 "{\"error\":{\"message\":\"The input (54011 tokens) is longer than the model's context length (8192 tokens).\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":400}}"
    log request
outcomes
    1:
    2: rejected 2
counters
    requests 2, 4xx 2, refused by an engine 2
