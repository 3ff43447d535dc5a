# The client of the only connection leaves: its port goes to the waiting request.
replicas 1
set replica-requests-max 2

A connects
B connects
A posts /v1/completions {"model":"m","prompt":"a"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
ports 1
B posts /v1/completions {"model":"m","prompt":"b"}
    cannot connect to 1
    log local_shortage
A ends
    close A
    close 1a
    log request end=client_gone
    connect 1b
    release A at 1
    book B at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"b\"}"
1b answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 1
counters
    requests 2, 2xx 1, clients gone 1
outcomes
    1: ok 1 client gone 1 not sent 1
