# SGLang may answer a health check by computing a token behind all other work. It is probed rarely
# and gets more time. /server_info reports its cache size.
replicas 1
probes
engines sglang
set health-timeout 1s
set health-timeout-sglang 4s

start
    connect 1a
1a accepts
    to 1a: GET /health HTTP/1.1
wait 2000
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 200 {"object":"list","data":[{"id":"m","owned_by":"sglang"}]}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 # nothing
    log replica_metrics_unknown
wait 50
    to 1a: GET /server_info HTTP/1.1
1a answers 200 {"max_total_num_tokens":100000,"page_size":16}
wait 50
    to 1a: GET /ping HTTP/1.1
1a answers 200 pong
wait 900
    to 1a: GET /health HTTP/1.1
wait 1000
    connect 1b
wait 1000
    close 1b
    connect 1c
