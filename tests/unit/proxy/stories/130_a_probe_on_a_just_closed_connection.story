# Engines close a connection that was idle for 5 s, perhaps just as a probe is sent on it. This
# shows nothing about the engine: it is probed again on a fresh connection.
replicas 1
probes
set health-failures 1
set scrape-interval 1h

start
    connect 1a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 200 {"object":"list","data":[]}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 vllm:num_requests_running 0
wait 1950
    to 1a: GET /health HTTP/1.1
1a ends
    close 1a
    connect 1b
1b accepts
    to 1b: GET /health HTTP/1.1
1b answers 200 ok
wait 2000
    to 1b: GET /health HTTP/1.1
1b ends
    close 1b
    connect 1c
1c accepts
    to 1c: GET /health HTTP/1.1
1c ends
    close 1c
    log replica_down
