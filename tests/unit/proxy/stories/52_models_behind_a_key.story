# Engines refuse the router's own model query, so the router asks with the client's key. Only this
# client gets the list, and the router learns which replica serves what. If all engines refuse, the
# client gets an engine's refusal. A client that leaves is forgotten.
replicas 2
probes

start
    connect 1a
    connect 2a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 401 {}
    log replica_refuses_probes
2a accepts
    to 2a: GET /health HTTP/1.1
2a answers 200 ok
    log replica_up
    to 2a: GET /v1/models HTTP/1.1
2a answers 403 {}
    log replica_refuses_probes
A connects
A sends "GET /v1/models HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer mine\r\n\r\n"
    connect 1b
    connect 2b
1b accepts
    to 1b: GET /v1/models HTTP/1.1; authorization: Bearer mine
1b answers 200 {"object":"list","data":[{"id":"m","owned_by":"vllm"}]}
    close 1b
2b accepts
    to 2b: GET /v1/models HTTP/1.1; authorization: Bearer mine
2b answers 401 {}
    close 2b
    to A: HTTP/1.1 200 OK; Content-Length: 55 "{\"object\":\"list\",\"data\":[{\"id\":\"m\",\"owned_by\":\"vllm\"}]}"
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1c
    book A at 1
A ends
    close A
    close 1c
    log request end=client_gone
    release A at 1
B connects
B sends "GET /v1/models HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer wrong\r\n\r\n"
    connect 1d
    connect 2c
1d accepts
    to 1d: GET /v1/models HTTP/1.1; authorization: Bearer wrong
1d answers 401 {"error":{"message":"wrong key"}}
    close 1d
2c refuses
    close 2c
    to B: HTTP/1.1 401 Unauthorized; Content-Length: 33 "{\"error\":{\"message\":\"wrong key\"}}"
C connects
C gets /v1/models/m
    connect 1e
    connect 2d
C ends
    close C
    close 1e
    close 2d
    log request end=client_gone
D connects
D gets /v1/models
    connect 1f
    connect 2e
1f refuses
    close 1f
2e refuses
    close 2e
    to D: HTTP/1.1 503 Service Unavailable; Content-Length: 160; retry-after: 1 "{\"error\":{\"message\":\"No replica listed its models. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
counters
    requests 5, 2xx 1, 4xx 1, 5xx 1, refused no replica 1, invalid: API key 1, clients gone 2
