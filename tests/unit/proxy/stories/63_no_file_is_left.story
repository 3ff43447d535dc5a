# No file left on this machine is our own trouble: the replica is not blamed, the client gets a 503,
# and the next request goes there.
replicas 1

A connects
no file is left
A posts /v1/completions {"model":"m","prompt":"x"}
    cannot connect to 1
    to A: HTTP/1.1 503 Service Unavailable; Content-Length: 161; retry-after: 1 "{\"error\":{\"message\":\"Too many connections are open. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
counters
    requests 2, 5xx 1, refused no replica 1
