# The time limit for the first token passes while the engine's counters move: the prompt is queued.
# A second replica would compute it too, so the client gets 504 and the replica is not blamed.
replicas 2
probes
set upstream-first-token-timeout 2s
set health-interval 1h

start
    connect 1a
    connect 2a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 200 {"object":"list","data":[{"id":"m"}]}
2a accepts
    to 2a: GET /health HTTP/1.1
2a answers 200 ok
    log replica_up
    to 2a: GET /v1/models HTTP/1.1
2a answers 200 {"object":"list","data":[{"id":"m"}]}
wait 50
    to 1a: GET /metrics HTTP/1.1
    to 2a: GET /metrics HTTP/1.1
2a answers 200 "vllm:num_requests_running 1\nvllm:generation_tokens_total 9000\n"
1a answers 200 "vllm:num_requests_running 1\nvllm:generation_tokens_total 5000\n"
A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1b
    book A at 1
wait 1000
    to 1a: GET /metrics HTTP/1.1
    to 2a: GET /metrics HTTP/1.1
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 81 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a answers 200 "vllm:num_requests_running 2\nvllm:generation_tokens_total 5100\n"
wait 1950
    to 1a: GET /metrics HTTP/1.1
wait 50
    close 1b
    log upstream_failed then=error
    to A: HTTP/1.1 504 Gateway Timeout; Content-Length: 197; x-grapevine-limit: upstream-first-token-timeout "{\"error\":{\"message\":\"The replica did not answer in time (upstream-first-token-timeout). Provider returned error 504 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":504}}"
    log request
    release A at 1
counters
    requests 1, 5xx 1, refused first token 1, upstream time-outs 1
