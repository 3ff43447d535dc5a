# An engine answers a health check while the request still waits for the kernel. The connection is
# not kept: the next request would overwrite the one that the network has still to read.
replicas 1
probes
set scrape-interval 1h

start
    connect 1a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 200 {"object":"list","data":[{"id":"m","object":"model","owned_by":"vllm"}]}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 vllm:num_requests_running 0
1a takes nothing
wait 2000
    queue for 1a: 95 bytes
1a answers 200 ok
    close 1a
wait 2000
    connect 1b
1b accepts
    to 1b: GET /health HTTP/1.1
1b answers 200 ok
