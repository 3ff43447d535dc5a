# Only SGLang has /generate. Engines known to be vLLM are not asked, unless all are vLLM.
replicas 2
engines auto
probes

start
    connect 1a
    connect 2a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 200 {"object":"list","data":[{"id":"m","owned_by":"vllm"}]}
    log replica_engine
2a accepts
    to 2a: GET /health HTTP/1.1
2a answers 200 ok
    log replica_up
    to 2a: GET /v1/models HTTP/1.1
2a answers 200 {"object":"list","data":[{"id":"m","owned_by":"sglang"}]}
    log replica_engine
A connects
A posts /generate {"text":"x"}
    connect 2b
    book A at 2
2b accepts
    to 2b: POST /generate HTTP/1.1; Content-Length: 12 "{\"text\":\"x\"}"
2b breaks
    close 2b
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 161 "{\"error\":{\"message\":\"No replica answered (1 tried). Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 2
