# The network reports with an event that no port is left for the connection. That connection had no
# port to give back: the next attempt follows after a while, not at once.
replicas 1

A connects
A posts /v1/completions {"model":"m","prompt":"a"}
    connect 1a
    book A at 1
1a finds no port
    log local_shortage
    close 1a
    release A at 1
wait 1000
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
1b answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
counters
    requests 1, 2xx 1
outcomes
    1: ok 1 not sent 1
