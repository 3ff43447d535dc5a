# An operator adds a replica and removes another. Requests in flight at the removed replica go on;
# its idle connections close.
replicas 1
probes

start
    connect 1a
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
B connects
B posts /v1/completions {"model":"m","prompt":"x"}
    connect 1c
    book B at 1
1c accepts
    to 1c: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1b answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
replica 2 comes
    log replica_added
wait 50
    connect 2a
2a accepts
    to 2a: GET /health HTTP/1.1
2a answers 200 ok
    log replica_up
    to 2a: GET /v1/models HTTP/1.1
replica 1 goes
    log replica_removed
    close 1a
    close 1b
1c answers 200 {"from":1}
    to B: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":1}"
    release B at 1
B posts /v1/completions {"model":"m","prompt":"x"}
    connect 2b
    book B at 2
replica 1 comes
    log replica_added
wait 50
    connect 1d
