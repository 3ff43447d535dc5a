# GET /v1/models merges the lists of all replicas. Also: one model by its name, and a model that no
# engine has.
replicas 2
probes

start
    connect 1a
    connect 2a
A connects
A gets /health
    to A: HTTP/1.1 503 Service Unavailable; Content-Length: 123; retry-after: 1 "{\"error\":{\"message\":\"The router is not ready: no replica is up.\",\"type\":\"ServiceUnavailableError\",\"param\":null,\"code\":503}}"
A gets /v1/models
    to A: HTTP/1.1 503 Service Unavailable; Content-Length: 243; retry-after: 1 "{\"error\":{\"message\":\"No replica has listed its models to the router yet. Try again when an engine is up: `gvctl replicas` shows them. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 200 {"object":"list","data":[{"id":"m","owned_by":"vllm"}]}
2a accepts
    to 2a: GET /health HTTP/1.1
2a answers 200 ok
    log replica_up
    to 2a: GET /v1/models HTTP/1.1
2a answers 200 {"object":"list","data":[{"id":"m"},{"id":"org/n"}]}
A gets /health
    to A: HTTP/1.1 200 OK; Content-Length: 0
A gets /v1/models
    to A: HTTP/1.1 200 OK; Content-Length: 70 "{\"object\":\"list\",\"data\":[{\"id\":\"m\",\"owned_by\":\"vllm\"},{\"id\":\"org/n\"}]}"
A sends "HEAD /v1/models HTTP/1.1\r\nHost: g\r\n\r\n"
    to A: HTTP/1.1 200 OK; Content-Length: 70
A gets /v1/models/org%2Fn
    to A: HTTP/1.1 200 OK; Content-Length: 14 "{\"id\":\"org/n\"}"
A gets /v1/models/absent
    to A: HTTP/1.1 404 Not Found; Content-Length: 108 "{\"error\":{\"message\":\"The model `absent` does not exist.\",\"type\":\"NotFoundError\",\"param\":\"model\",\"code\":404}}"
A gets /v1/models/%00
    to A: HTTP/1.1 404 Not Found; Content-Length: 102 "{\"error\":{\"message\":\"The model `` does not exist.\",\"type\":\"NotFoundError\",\"param\":\"model\",\"code\":404}}"
A posts /v1/completions {"model":"absent","prompt":"x"}
wait 1000
    to 1a: GET /metrics HTTP/1.1
    to 2a: GET /metrics HTTP/1.1
    connect 1b
    connect 2b
    to A: HTTP/1.1 404 Not Found; Content-Length: 108 "{\"error\":{\"message\":\"The model `absent` does not exist.\",\"type\":\"NotFoundError\",\"param\":\"model\",\"code\":404}}"
A posts /v1/embeddings {"model":"a\"b\\c\u00e9\n","input":"x"}
wait 1000
    to A: HTTP/1.1 404 Not Found; Content-Length: 113 "{\"error\":{\"message\":\"The model `a\x5c\"b\x5c\x5cc\xc3\xa9\x5cn` does not exist.\",\"type\":\"NotFoundError\",\"param\":\"model\",\"code\":404}}"
counters
    requests 10, 2xx 4, 4xx 4, 5xx 2, refused no replica 2, invalid: model 4
