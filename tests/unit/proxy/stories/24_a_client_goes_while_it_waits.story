# A client that closes its connection is gone, even if only its sending half: the engine is let go
# at once, so that it stops computing, and the booking with it.
replicas 1

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
A ends
    close A
    close 1a
    log request end=client_gone
    release A at 1
B connects
B posts /v1/completions {"model":"m","prompt":"x"}
    connect 1b
    book B at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
B ends
    close B
    close 1b
    log request end=client_gone
    release B at 1
counters
    requests 2, clients gone 2
