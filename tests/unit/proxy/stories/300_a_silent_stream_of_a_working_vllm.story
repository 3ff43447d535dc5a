# The engine's parser holds back a tool call's arguments: the stream is silent for longer than
# upstream-idle-timeout "auto" while the engine counts tokens. The stream goes on.
replicas 1
probes
engines vllm
set health-interval 1h
set scrape-interval 10s
set watchdog 0

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
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "vllm:num_requests_running 1\nvllm:generation_tokens_total 5100\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "vllm:num_requests_running 1\nvllm:generation_tokens_total 5200\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "vllm:num_requests_running 1\nvllm:generation_tokens_total 5300\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "vllm:num_requests_running 1\nvllm:generation_tokens_total 5400\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "vllm:num_requests_running 1\nvllm:generation_tokens_total 5500\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "vllm:num_requests_running 1\nvllm:generation_tokens_total 5600\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "vllm:num_requests_running 1\nvllm:generation_tokens_total 5700\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "vllm:num_requests_running 1\nvllm:generation_tokens_total 5800\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "vllm:num_requests_running 1\nvllm:generation_tokens_total 5900\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "vllm:num_requests_running 1\nvllm:generation_tokens_total 6000\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "vllm:num_requests_running 1\nvllm:generation_tokens_total 6100\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "vllm:num_requests_running 1\nvllm:generation_tokens_total 6200\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "vllm:num_requests_running 1\nvllm:generation_tokens_total 6300\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "vllm:num_requests_running 1\nvllm:generation_tokens_total 6400\n"
1b says "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"
    to A: "30\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\r\n"
