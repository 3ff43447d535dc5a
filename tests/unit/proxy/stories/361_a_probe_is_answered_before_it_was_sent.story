# An engine answers a health check whose question still waits here for room in the kernel. Its connection
# is not kept: the next question would be written over the one that the network is still to read.
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
