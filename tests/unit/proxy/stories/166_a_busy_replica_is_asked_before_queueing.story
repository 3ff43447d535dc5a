# Replica 1 reported that it is full, with one request of this router in flight. Replica 2 is at its
# limit. When that request has ended, replica 1 must have a free place: the next request goes there
# and does not wait.
replicas 2
set policy round_robin
set replica-requests-max 2

A connects
B connects
C connects
D connects
E connects
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
    connect 1b
    book C at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"c\"}"
1b answers 503 {}
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2b
    release C at 1
    book C at 2
2b accepts
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"c\"}"
D posts /v1/completions {"model":"m","prompt":"d"}
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"d\"}"
    release A at 1
    book D at 1
2a answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 2
2b answers 200 {}
    to C: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release C at 2
1a answers 200 {}
    to D: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release D at 1
counters
    requests 4, retries 1, 2xx 4, upstream reused 1
