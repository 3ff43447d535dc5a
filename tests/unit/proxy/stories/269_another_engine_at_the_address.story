# A replica's port refused a request, so another engine may answer there next. It lists its models
# before it gets a request.
replicas 1
probes

start
    connect 1a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 200 {"object":"list","data":[{"id":"m"}]}
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1b
    book A at 1
1b refuses
    close 1b
    log upstream_failed then=error
    to A: HTTP/1.1 503 Service Unavailable; Content-Length: 161; retry-after: 1 "{\"error\":{\"message\":\"No replica answered (1 tried). Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
    release A at 1
wait 50
    to 1a: GET /health HTTP/1.1
1a ends
    close 1a
    connect 1c
1c refuses
    close 1c
    log replica_down
wait 500
    connect 1d
1d accepts
    to 1d: GET /health HTTP/1.1
1d answers 200 ok
    log replica_up
    to 1d: GET /v1/models HTTP/1.1
A posts /v1/completions {"model":"m","prompt":"y"}
A posts /v1/completions {"model":"other","prompt":"y"}
1d answers 200 {"object":"list","data":[{"id":"other"}]}
    to A: HTTP/1.1 404 Not Found; Content-Length: 103 "{\"error\":{\"message\":\"The model `m` does not exist.\",\"type\":\"NotFoundError\",\"param\":\"model\",\"code\":404}}"
    connect 1e
    book A at 1
1e accepts
    to 1e: POST /v1/completions HTTP/1.1; Content-Length: 30 "{\"model\":\"other\",\"prompt\":\"y\"}"
1e answers 200 {"from":1}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":1}"
    release A at 1
counters
    requests 3, 2xx 1, 4xx 1, 5xx 1, refused no replica 1, invalid: model 1, connect failures 1
