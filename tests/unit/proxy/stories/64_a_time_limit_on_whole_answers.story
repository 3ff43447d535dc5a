# A time limit for answers without streaming may be configured.
replicas 1
set upstream-first-token-timeout 2s
set upstream-whole-answer-timeout 30s

A connects
A posts /v1/chat/completions {"model":"m","messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
wait 29950
wait 50
    close 1a
    log upstream_failed then=error
    to A: HTTP/1.1 504 Gateway Timeout; Content-Length: 198; x-grapevine-limit: upstream-whole-answer-timeout "{\"error\":{\"message\":\"The replica did not answer in time (upstream-whole-answer-timeout). Provider returned error 504 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":504}}"
    log request
    release A at 1
