# Retries are limited to a share of the requests. If the budget is empty, the client gets the
# failure, and the router's own error names the setting.
replicas 2
set retry-budget 0
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 503 {"error":"busy"}
    log upstream_failed then=answer
    to A: HTTP/1.1 503 X; Content-Length: 16; x-grapevine-limit: retry-budget; retry-after: 1 "{\"error\":\"busy\"}"
    log request
    release A at 1
A posts /v1/completions {"model":"m","prompt":"y"}
    connect 2a
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
2a breaks
    close 2a
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 169; x-grapevine-limit: retry-budget "{\"error\":{\"message\":\"The replica failed before it answered. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 2
counters
    requests 2, 5xx 2, refused retry budget 1, upstream broken 1
