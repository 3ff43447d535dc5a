# SGLang without metrics reports its ranks in /server_info. Its native path takes the rank in the
# body, not in the head; responses take it in the head, unlike vLLM's. When the process breaks, the
# request goes to a replica without ranks, and names none.
replicas 2
engines sglang
probes
set health-interval 1h
set ask-usage off

start
    connect 1a
    connect 2a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 200 {"object":"list","data":[{"id":"m"}]}
2a refuses
    close 2a
    log replica_down
wait 50
    connect 2b
    to 1a: GET /metrics HTTP/1.1
1a answers 404 "no metrics"
    log replica_metrics_unknown
wait 50
    to 1a: GET /server_info HTTP/1.1
1a answers 200 {"dp_size":2,"page_size":1,"max_total_num_tokens":65536}
wait 1000
    to 1a: GET /ping HTTP/1.1
    close 2b
    connect 2c
    close 2c
    connect 2d
A connects
A posts /v1/responses {"model":"m","input":"hello"}
    connect 1b
    book A at 3
1b accepts
    to 1b: POST /v1/responses HTTP/1.1; Content-Length: 29; X-Data-Parallel-Rank: 0 "{\"model\":\"m\",\"input\":\"hello\"}"
1b answers 200 {"id":"resp_1","output":[]}
    to A: HTTP/1.1 200 X; Content-Length: 27 "{\"id\":\"resp_1\",\"output\":[]}"
    release A at 3
A posts /generate {"text":"hello","sampling_params":{"max_new_tokens":2}}
    to 1b: POST /generate HTTP/1.1; Content-Length: 75 "{\"routed_dp_rank\": 1,\"text\":\"hello\",\"sampling_params\":{\"max_new_tokens\":2}}"
    book A at 4
2d accepts
    to 2d: GET /health HTTP/1.1
2d answers 200 ok
    log replica_up
    to 2d: GET /v1/models HTTP/1.1
2d answers 200 {"object":"list","data":[{"id":"m"}]}
1b breaks
    close 1b
    connect 1c
1c refuses
    close 1c
    log upstream_failed then=moved to=10.0.0.2:8000
    release A at 4
    book A at 2
wait 200
    connect 1d
    to 2d: GET /metrics HTTP/1.1
    connect 2e
2e accepts
    to 2e: POST /generate HTTP/1.1; Content-Length: 75 "{                    \"text\":\"hello\",\"sampling_params\":{\"max_new_tokens\":2}}"
counters
    requests 2, retries 1, 2xx 1, connect failures 1, upstream reused 1, upstream stale 1
