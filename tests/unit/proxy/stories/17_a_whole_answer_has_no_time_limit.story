# Without streaming the first byte arrives with the last, so no time limit applies. Until the
# request is sent, a slow engine does count.
replicas 1
set upstream-first-token-timeout 2s

A connects
A posts /v1/chat/completions {"model":"m","messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
wait 120000
1a answers 200 {"choices":[]}
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 1
1a takes nothing
A posts /v1/chat/completions {"model":"m","messages":[]}
    queue for 1a: 305 bytes
    book A at 1
wait 1950
wait 50
    close 1a
    log upstream_failed then=error
    to A: HTTP/1.1 504 Gateway Timeout; Content-Length: 191; x-grapevine-limit: upstream-first-token-timeout "{\"error\":{\"message\":\"No replica answered (1 tried; upstream-first-token-timeout). Provider returned error 504 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":504}}"
    log request
    release A at 1
counters
    requests 2, 2xx 1, 5xx 1, refused first token 1, upstream time-outs 1, upstream reused 1
