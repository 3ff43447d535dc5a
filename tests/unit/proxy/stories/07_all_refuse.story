# When nobody takes it the client is told so, once: 502 with the number of replicas that were tried.
replicas 2

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a refuses
    close 1a
    log upstream_failed
    connect 2a
    release A at 1
    book A at 2
2a refuses
    close 2a
    log upstream_failed
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 103 "{\"error\":{\"message\":\"No replica answered (2 tried).\",\"type\":\"BadGatewayError\",\"param\":null,\"code\":502}}"
    log request
    release A at 2
counters
    requests 1, retries 1, 5xx 1, connect failures 2
