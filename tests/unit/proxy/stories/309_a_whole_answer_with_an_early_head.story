# A server sends the head of an answer without streaming long before the body. upstream-idle-timeout
# applies, and does not run while the engine counts tokens.
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
A posts /v1/chat/completions {"model":"m","messages":[]}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
1b sends "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to A: HTTP/1.1 200 OK; Content-Length: 2
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
1b sends "{}"
    to A: "{}"
    release A at 1
