# The router's own errors have Anthropic's form on its paths: no replica, an unknown path or method,
# a failing replica.
replicas 1

A connects
A gets /v1/messages
    to A: HTTP/1.1 405 Method Not Allowed; Content-Length: 142; allow: POST "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"/v1/messages takes POST.\"},\"request_id\":\"6502eeb65069f8d139474e71d99d99b2\"}"
A gets /v1/messages/batches
    to A: HTTP/1.1 404 Not Found; Content-Length: 122 "{\"type\":\"error\",\"error\":{\"type\":\"not_found_error\",\"message\":\"Not found.\"},\"request_id\":\"6a604477f0713a2517889798c4e59b5d\"}"
A posts /v1/messages {"model":"m","messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/messages HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
1a breaks
    close 1a
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 197 "{\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"No replica answered (1 tried). Provider returned error 502 (server error): try again later.\"},\"request_id\":\"e58716494a0c2a2cffee02a0e80a2571\"}"
    log request
    release A at 1
replica 1 goes
    log replica_removed
A posts /v1/messages/count_tokens {"model":"m","messages":[]}
    to A: HTTP/1.1 503 Service Unavailable; Content-Length: 216; retry-after: 1 "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"No replica that serves this request is up. Provider returned error 503 (server error): try again later.\"},\"request_id\":\"ba5593a96e2fd24c1bf23f138ea679b1\"}"
    log request
A posts /v1/chat/completions {"model":"m","messages":[]}
    to A: HTTP/1.1 503 Service Unavailable; Content-Length: 173; retry-after: 1 "{\"error\":{\"message\":\"No replica that serves this request is up. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
