# No replica accepts a connection in time: 504.
replicas 2
set upstream-connect-timeout 2s

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
wait 2000
    close 1a
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2a
    release A at 1
    book A at 2
wait 2000
    close 2a
    log upstream_failed then=error
    to A: HTTP/1.1 504 Gateway Timeout; Content-Length: 187; x-grapevine-limit: upstream-connect-timeout "{\"error\":{\"message\":\"No replica answered (2 tried; upstream-connect-timeout). Provider returned error 504 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":504}}"
    log request
    release A at 2
counters
    requests 1, retries 1, 5xx 1, refused connect time 1, connect failures 2, upstream time-outs 2
