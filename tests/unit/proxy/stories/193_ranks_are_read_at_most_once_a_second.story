# A refused pin shows that the engine's ranks have changed: they are read at once. Clients can cause
# repeated refusals too, so the ranks are read at most once a second.
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
wait 50
    to 1a: GET /ping HTTP/1.1
1a answers 404 "no ping"
A posts /v1/completions {"model":"m","prompt":"one"}
    connect 1b
    book A at 2
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 28; X-Data-Parallel-Rank: 0 "{\"model\":\"m\",\"prompt\":\"one\"}"
1b answers 400 {"error":{"message":"data_parallel_rank 1 is out of range [0, 1).","type":"BadRequestError","param":null,"code":400}}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 28 "{\"model\":\"m\",\"prompt\":\"one\"}"
    release A at 2
    book A at 1
1b answers 200 {"choices":[]}
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 1
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 "no metrics"
wait 50
    to 1a: GET /server_info HTTP/1.1
1a answers 200 {"dp_size":2,"page_size":1,"max_total_num_tokens":65536}
A posts /v1/completions {"model":"m","prompt":"two"}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 28; X-Data-Parallel-Rank: 0 "{\"model\":\"m\",\"prompt\":\"two\"}"
    book A at 2
1b answers 400 {"error":{"message":"data_parallel_rank 1 is out of range [0, 1).","type":"BadRequestError","param":null,"code":400}}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 28 "{\"model\":\"m\",\"prompt\":\"two\"}"
    release A at 2
    book A at 1
1b answers 200 {"choices":[]}
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 1
wait 500
A posts /v1/completions {"model":"m","prompt":"three"}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 30; X-Data-Parallel-Rank: 1 "{\"model\":\"m\",\"prompt\":\"three\"}"
    book A at 3
1b answers 400 {"error":{"message":"data_parallel_rank 1 is out of range [0, 1).","type":"BadRequestError","param":null,"code":400}}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 30 "{\"model\":\"m\",\"prompt\":\"three\"}"
    release A at 3
    book A at 1
1b answers 200 {"choices":[]}
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 1
wait 500
    to 1a: GET /metrics HTTP/1.1
1a answers 404 "no metrics"
wait 50
    to 1a: GET /server_info HTTP/1.1
1a answers 200 {"dp_size":2,"page_size":1,"max_total_num_tokens":65536}
