# A health check without a timely answer is a failure like any other, for every kind of probe. The
# next probe uses a fresh connection.
replicas 1
probes
set health-timeout 1s
set health-failures 1

start
    connect 1a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
wait 1000
    connect 1b
    close 1a
wait 50
1b accepts
    to 1b: GET /metrics HTTP/1.1
wait 1000
    close 1b
    connect 1c
    connect 1d
1c accepts
    to 1c: GET /metrics HTTP/1.1
1d accepts
    to 1d: GET /health HTTP/1.1
wait 1000
    close 1c
    connect 1e
    close 1d
    log replica_down
    connect 1f
