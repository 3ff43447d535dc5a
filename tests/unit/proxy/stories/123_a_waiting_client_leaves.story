# A client that leaves is removed from the queue, and nothing is computed for it.
replicas 1
set replica-requests-max 1

A connects
B connects
C connects
A posts /v1/completions {"model":"m","prompt":"a"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
B posts /v1/completions {"model":"m","prompt":"b"}
C posts /v1/completions {"model":"m","prompt":"c"}
B ends
    close B
    log request end=client_gone
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"c\"}"
    release A at 1
    book C at 1
1a answers 200 {}
    to C: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release C at 1
counters
    requests 3, 2xx 2, clients gone 1, upstream reused 1
