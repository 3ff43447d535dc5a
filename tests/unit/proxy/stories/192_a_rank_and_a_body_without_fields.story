# SGLang's native path takes the rank in the body. A body that is not an object, or empty, is
# forwarded unchanged, and the client sees the engine's answer.
replicas 1
engines sglang
probes
set health-interval 1h
set ask-usage off

start
    connect 1a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 200 {"object":"list","data":[{"id":"m"}]}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 "no metrics"
    log replica_metrics_unknown
wait 50
    to 1a: GET /server_info HTTP/1.1
1a answers 200 {"dp_size":2,"page_size":1,"max_total_num_tokens":65536}
A connects
A posts /generate { }
    connect 1b
    book A at 2
1b accepts
    to 1b: POST /generate HTTP/1.1; Content-Length: 3 "{ }"
1b answers 400 {"message":"no text"}
    to A: HTTP/1.1 400 X; Content-Length: 21 "{\"message\":\"no text\"}"
    log request
    release A at 2
A posts /generate [{"text":"hello"}]
    to 1b: POST /generate HTTP/1.1; Content-Length: 18 "[{\"text\":\"hello\"}]"
    book A at 3
1b answers 400 {"message":"no list"}
    to A: HTTP/1.1 400 X; Content-Length: 21 "{\"message\":\"no list\"}"
    log request
    release A at 3
