# Three engines of a host are killed at once. A request without a token at the first goes to the
# second on a fresh connection, and the port refuses. The request never reached the second, so it
# has lost only one engine, and goes to a live one.
replicas 4
set policy round_robin

A connects
A posts /v1/completions {"model":"m","prompt":"a"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
A posts /v1/completions {"model":"m","prompt":"b"}
    connect 2a
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"b\"}"
2a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 2
A posts /v1/completions {"model":"m","prompt":"c"}
    connect 3a
    book A at 3
3a accepts
    to 3a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"c\"}"
3a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 3
A posts /v1/completions {"model":"m","prompt":"d"}
    connect 4a
    book A at 4
4a accepts
    to 4a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"d\"}"
4a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 4
B connects
B posts /v1/completions {"model":"m","prompt":"e"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"e\"}"
    book B at 1
wait 200
1a breaks
    close 1a
    log upstream_failed then=moved to=10.0.0.4:8000
    release B at 1
    book B at 4
wait 250
    connect 4b
4b refuses
    close 4b
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2b
    release B at 4
    book B at 2
wait 250
2b refuses
    close 2b
    log upstream_failed then=moved to=10.0.0.3:8000
    connect 3b
    release B at 2
    book B at 3
wait 250
3b accepts
    to 3b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"e\"}"
3b answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 3
counters
    requests 5, retries 3, 2xx 5, connect failures 2, upstream broken 1, upstream reused 1
