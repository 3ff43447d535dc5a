# All replicas are down, and are tried anyway, but none gets more than replica-requests-max. Further
# requests wait, and are answered when a replica is back.
replicas 1
probes
set when-all-down try
set replica-requests-max 1
set health-interval 60s

start
    connect 1a
1a refuses
    close 1a
    log replica_down
A connects
B connects
A posts /v1/completions {"model":"m","prompt":"a"}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
B posts /v1/completions {"model":"m","prompt":"b"}
1b answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"b\"}"
    release A at 1
    book B at 1
1b answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 1
counters
    requests 2, 2xx 2, upstream reused 1
