# The only engine stops for 8 s: its health checks fail, and it is down. Its port does not refuse,
# so its requests wait, with or without a token, and get their answers.
replicas 1
probes
engines vllm
set health-interval 3s
set scrape-interval 1h
set watchdog 2s
set health-timeout 1s
set health-failures 1

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
1a answers 200 "vllm:num_requests_running 1\nvllm:generation_tokens_total 5000\n"
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
B connects
B posts /v1/chat/completions {"model":"m","messages":[]}
    connect 1c
    book B at 1
1c accepts
    to 1c: POST /v1/chat/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
wait 8000
    to 1a: GET /metrics HTTP/1.1
    close 1a
    connect 1d
    log replica_stalled
    close 1d
    connect 1e
    connect 1f
    close 1e
    connect 1g
    close 1f
    log replica_down
    connect 1h
    close 1g
    close 1h
    connect 1i
    close 1i
    connect 1j
    close 1j
    connect 1k
    close 1k
    connect 1l
    close 1l
    connect 1m
    close 1m
    connect 1n
    close 1n
    connect 1o
    close 1o
    connect 1p
1b says "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"
    to A: "30\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\r\n"
1c answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 1
