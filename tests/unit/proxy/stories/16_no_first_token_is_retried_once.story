# An engine that is silent this long has most likely queued the prompt. If it shows no sign of work,
# another replica computes the prompt, once. If that replica is silent too, the request times out.
replicas 3
set upstream-first-token-timeout 2s

A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
wait 1950
wait 50
    close 1a
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
wait 1950
wait 50
    close 2a
    log upstream_failed then=error
    to A: HTTP/1.1 504 Gateway Timeout; Content-Length: 197; x-grapevine-limit: upstream-first-token-timeout "{\"error\":{\"message\":\"The replica did not answer in time (upstream-first-token-timeout). Provider returned error 504 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":504}}"
    log request
    release A at 2
counters
    requests 1, retries 1, 5xx 1, refused first token 1, upstream time-outs 2
