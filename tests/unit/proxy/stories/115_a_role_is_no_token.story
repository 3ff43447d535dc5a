# The role arrives before anything is computed. From then on the limit for the first token runs
# anew. After a token the limit between two pieces applies.
replicas 1
set upstream-first-token-timeout 2s
set upstream-idle-timeout 5s

A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a streams
wait 1000
1a says "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
wait 1950
1a says "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "70\r\ndata: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n\r\n"
wait 4950
wait 50
    close 1a
    log upstream_failed then=error_event
    to A: "da\r\ndata: {\"error\":{\"message\":\"The replica was silent for too long (upstream-idle-timeout): its answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    log request end=engine_failed reason=idle limit=upstream-idle-timeout
    close A
    release A at 1
B connects
B posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1b
    book B at 1
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 81 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1b streams
wait 1950
wait 50
    close 1b
    log upstream_failed then=error
    to B: HTTP/1.1 504 Gateway Timeout; Content-Length: 191; x-grapevine-limit: upstream-first-token-timeout "{\"error\":{\"message\":\"No replica answered (1 tried; upstream-first-token-timeout). Provider returned error 504 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":504}}"
    log request
    release B at 1
counters
    requests 2, 2xx 1, 5xx 1, refused first token 1, cut: engine 1, upstream time-outs 2
