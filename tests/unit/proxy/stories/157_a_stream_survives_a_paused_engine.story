# A process is stopped in the middle of a stream, and continues after 20 s: most pauses end by
# themselves. Nothing is cut.
replicas 2
probes
engines vllm
set health-interval 1h
set scrape-interval 1h
set watchdog 2s
set health-timeout 4s

start
    connect 1a
    connect 2a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
    log replica_models_unknown
2a accepts
    to 2a: GET /health HTTP/1.1
2a answers 200 ok
    log replica_up
    to 2a: GET /v1/models HTTP/1.1
2a answers 404 {}
    log replica_models_unknown
wait 50
    to 1a: GET /metrics HTTP/1.1
    to 2a: GET /metrics HTTP/1.1
1a answers 200 vllm:num_requests_running 0
2a answers 200 vllm:num_requests_running 0
A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 81 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1b streams
1b says "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "30\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\r\n"
wait 2500
    to 1a: GET /metrics HTTP/1.1
    log replica_stalled
wait 17500
    close 1a
    connect 1c
    close 1c
    connect 1d
    connect 1e
    to 2a: GET /v1/models HTTP/1.1
    close 1d
    connect 1f
    close 1e
    close 2a
    close 1f
    connect 1g
    connect 1h
    connect 2b
1b says "data: {\"choices\":[{\"delta\":{\"content\":\"again\"}}]}\n\n"
    to A: "33\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"again\"}}]}\n\n\r\n"
