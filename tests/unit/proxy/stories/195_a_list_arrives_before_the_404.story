# A new replica is up, and gets a request before it has listed its models. The list arrives during
# the request. Its 404 still means that another replica is asked, and the client does not see it.
replicas 2
probes

start
    connect 1a
    connect 2a
2a accepts
    to 2a: GET /health HTTP/1.1
2a answers 200 ok
    log replica_up
    to 2a: GET /v1/models HTTP/1.1
2a answers 200 {"object":"list","data":[{"id":"m"}]}
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 200 {"object":"list","data":[{"id":"other"}]}
1b answers 404 {"error":{"message":"The model `m` does not exist.","param":"model"}}
    connect 2b
    release A at 1
    book A at 2
2b accepts
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2b answers 200 {"from":2}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
