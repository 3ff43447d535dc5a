# Engines are restarted in turn: each closes its port, leaves its requests hanging, and is killed a
# second later. A request that was at two of them is no poison: both had been told to stop while
# they lived.
replicas 3
set policy round_robin
set retries-max 3

A connects
A posts /v1/completions {"model":"m","prompt":"a"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
B connects
B posts /v1/completions {"model":"m","prompt":"b"}
    connect 2a
    book B at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"b\"}"
2a answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 2
B posts /v1/completions {"model":"m","prompt":"c"}
    connect 3a
    book B at 3
3a accepts
    to 3a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"c\"}"
3a answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 3
B posts /v1/completions {"model":"m","prompt":"d"}
    connect 1b
    book B at 1
1b refuses
    close 1b
    log upstream_failed then=moved to=10.0.0.2:8000
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"d\"}"
    release B at 1
    book B at 2
2a answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 2
wait 900
1a ends
    close 1a
    log upstream_failed then=moved to=10.0.0.3:8000
    to 3a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
    release A at 1
    book A at 3
C connects
C posts /v1/completions {"model":"m","prompt":"e"}
    connect 1c
    book C at 1
1c accepts
    to 1c: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"e\"}"
1c answers 200 {}
    to C: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release C at 1
C posts /v1/completions {"model":"m","prompt":"f"}
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"f\"}"
    book C at 2
2a answers 200 {}
    to C: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release C at 2
C posts /v1/completions {"model":"m","prompt":"g"}
    connect 3b
    book C at 3
3b refuses
    close 3b
    log upstream_failed then=moved to=10.0.0.2:8000
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"g\"}"
    release C at 3
    book C at 2
2a answers 200 {}
    to C: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release C at 2
wait 900
3a ends
    close 3a
    log upstream_failed then=moved to=10.0.0.2:8000
    release A at 3
    book A at 2
wait 300
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
2a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 2
counters
    requests 7, retries 4, 2xx 7, connect failures 2, upstream broken 2, upstream reused 5
