# The engine closed a reused connection, and no port is left for another: the request waits for one,
# and the replica is not blamed.
replicas 1

A connects
A posts /v1/completions {"model":"m","prompt":"a"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
ports 0
A posts /v1/completions {"model":"m","prompt":"b"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"b\"}"
    book A at 1
1a ends
    close 1a
    cannot connect to 1
    log local_shortage
    release A at 1
wait 500
    cannot connect to 1
    cannot connect to 1
ports 1
wait 1000
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"b\"}"
1b answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
counters
    requests 2, 2xx 2, upstream reused 1, upstream stale 1
outcomes
    1: ok 2 not sent 3
