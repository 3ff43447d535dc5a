# If every replica is at its limit, requests wait, first come first served. Each released booking
# serves one.
replicas 2
set replica-requests-max 1

A connects
B connects
C connects
D connects
A posts /v1/completions {"model":"m","prompt":"a"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
B posts /v1/completions {"model":"m","prompt":"b"}
    connect 2a
    book B at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"b\"}"
C posts /v1/completions {"model":"m","prompt":"c"}
D posts /v1/completions {"model":"m","prompt":"d"}
2a answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"c\"}"
    release B at 2
    book C at 2
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"d\"}"
    release A at 1
    book D at 1
1a answers 200 {}
    to D: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release D at 1
2a answers 200 {}
    to C: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release C at 2
counters
    requests 4, 2xx 4, upstream reused 2
