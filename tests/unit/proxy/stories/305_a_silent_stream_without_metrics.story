# The engine reports no steps, and its server answers: stall-cut does not apply. The idle limit is
# five minutes instead of two.
replicas 1
probes
engines vllm
set health-interval 1h
set scrape-interval 10s
set watchdog 0
set stall-cut 30s

start
    connect 1a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
    log replica_models_unknown
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
    log replica_metrics_unknown
A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 81 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1b streams
1b says "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
1b says "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "71\r\ndata: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\r\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
wait 9900
wait 1000
    to 1a: GET /v1/models HTTP/1.1
    close 1b
    log upstream_failed then=error_event
    to A: "da\r\ndata: {\"error\":{\"message\":\"The replica was silent for too long (upstream-idle-timeout): its answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    log request end=engine_failed reason=idle limit=upstream-idle-timeout
    close A
    release A at 1
    connect 1c
