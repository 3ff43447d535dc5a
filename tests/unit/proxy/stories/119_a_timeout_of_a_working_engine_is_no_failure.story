# A timeout while the engine works is no failure: after five such requests in a row the engine is up
# and gets the next request.
replicas 1
probes
set upstream-first-token-timeout 2s
set health-interval 1h

start
    connect 1a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 200 {"object":"list","data":[{"id":"m"}]}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "vllm:num_requests_running 1\nvllm:generation_tokens_total 5000\n"
A connects
B connects
C connects
D connects
E connects
F connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1b
    book A at 1
B posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1c
    book B at 1
C posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1d
    book C at 1
D posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1e
    book D at 1
E posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1f
    book E at 1
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 81 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1c accepts
    to 1c: POST /v1/chat/completions HTTP/1.1; Content-Length: 81 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1d accepts
    to 1d: POST /v1/chat/completions HTTP/1.1; Content-Length: 81 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1e accepts
    to 1e: POST /v1/chat/completions HTTP/1.1; Content-Length: 81 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1f accepts
    to 1f: POST /v1/chat/completions HTTP/1.1; Content-Length: 81 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"messages\":[]}"
wait 1000
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "vllm:num_requests_running 5\nvllm:generation_tokens_total 5100\n"
wait 1000
    to 1a: GET /metrics HTTP/1.1
    close 1b
    log upstream_failed then=error
    to A: HTTP/1.1 504 Gateway Timeout; Content-Length: 197; x-grapevine-limit: upstream-first-token-timeout "{\"error\":{\"message\":\"The replica did not answer in time (upstream-first-token-timeout). Provider returned error 504 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":504}}"
    log request
    close 1c
    log upstream_failed then=error
    to B: HTTP/1.1 504 Gateway Timeout; Content-Length: 197; x-grapevine-limit: upstream-first-token-timeout "{\"error\":{\"message\":\"The replica did not answer in time (upstream-first-token-timeout). Provider returned error 504 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":504}}"
    log request
    close 1d
    log upstream_failed then=error
    to C: HTTP/1.1 504 Gateway Timeout; Content-Length: 197; x-grapevine-limit: upstream-first-token-timeout "{\"error\":{\"message\":\"The replica did not answer in time (upstream-first-token-timeout). Provider returned error 504 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":504}}"
    log request
    close 1e
    log upstream_failed then=error
    to D: HTTP/1.1 504 Gateway Timeout; Content-Length: 197; x-grapevine-limit: upstream-first-token-timeout "{\"error\":{\"message\":\"The replica did not answer in time (upstream-first-token-timeout). Provider returned error 504 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":504}}"
    log request
    close 1f
    log upstream_failed then=error
    to E: HTTP/1.1 504 Gateway Timeout; Content-Length: 197; x-grapevine-limit: upstream-first-token-timeout "{\"error\":{\"message\":\"The replica did not answer in time (upstream-first-token-timeout). Provider returned error 504 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":504}}"
    log request
    release A at 1
    release B at 1
    release C at 1
    release D at 1
    release E at 1
F posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1g
    book F at 1
counters
    requests 6, 5xx 5, refused first token 5, upstream time-outs 5
