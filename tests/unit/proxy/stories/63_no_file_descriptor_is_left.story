# If the machine has no file descriptor left, the replica is not blamed and the request waits for
# one.
replicas 1
set upstream-keepalive 0

files 1
A connects
B connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
B posts /v1/completions {"model":"m","prompt":"y"}
    cannot connect to 1
    log local_shortage
wait 500
    cannot connect to 1
    cannot connect to 1
1a answers 200 {}
    close 1a
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    connect 1b
    release A at 1
    book B at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
1b answers 200 {}
    close 1b
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 1
counters
    requests 2, 2xx 2
outcomes
    1: ok 2 not sent 3
