# A router listed as a replica gets no requests, which would loop. It is logged once.
replicas 1
probes

start
    connect 1a
1a accepts
    to 1a: GET /health HTTP/1.1
1a sends "HTTP/1.1 200 OK\r\nx-grapevine-router: grapevine-000000000000000a west\r\nContent-Length: 0\r\n\r\n"
    log replica_is_router
wait 2000
    to 1a: GET /health HTTP/1.1
1a sends "HTTP/1.1 200 OK\r\nx-grapevine-router: grapevine-5a5a5a5a5a5a5a5a\r\nContent-Length: 0\r\n\r\n"
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    to A: HTTP/1.1 503 Service Unavailable; Content-Length: 173; retry-after: 1 "{\"error\":{\"message\":\"No replica that serves this request is up. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
A gets /health
    to A: HTTP/1.1 503 Service Unavailable; Content-Length: 123; retry-after: 1 "{\"error\":{\"message\":\"The router is not ready: no replica is up.\",\"type\":\"ServiceUnavailableError\",\"param\":null,\"code\":503}}"
A gets /v1/models
    to A: HTTP/1.1 503 Service Unavailable; Content-Length: 243; retry-after: 1 "{\"error\":{\"message\":\"No replica has listed its models to the router yet. Try again when an engine is up: `gvctl replicas` shows them. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
