# A new request goes behind the waiting requests even if a place has just become free. Here it is
# the second of a pipeline, started just as the first was answered.
replicas 1
set replica-requests-max 1

A connects
B connects
A posts /v1/completions {"model":"m","prompt":"a"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
B posts /v1/completions {"model":"m","prompt":"b"}
A posts /v1/completions {"model":"m","prompt":"c"}
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"b\"}"
    release A at 1
    book B at 1
1a answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"c\"}"
    book A at 1
    release B at 1
counters
    requests 3, 2xx 2, upstream reused 2
