# An engine's name moves to another address, and a server at the old address still answers. Requests
# in flight there finish and their connections close; the next request goes to the new address,
# though an idle connection to the old one exists.
replicas 1
names

start
    look up 1
the name of 1 has the addresses 1
wait 5000
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
B connects
B posts /v1/completions {"model":"m","prompt":"y"}
    connect 1b
    book B at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
C connects
C posts /v1/completions {"model":"m","prompt":"z"}
    connect 1c
    book C at 1
1c refuses
    close 1c
    look up 1
    log upstream_failed then=error
    to C: HTTP/1.1 503 Service Unavailable; Content-Length: 161; retry-after: 1 "{\"error\":{\"message\":\"No replica answered (1 tried). Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
    release C at 1
1b answers 200 {"n":2}
    to B: HTTP/1.1 200 X; Content-Length: 7 "{\"n\":2}"
    release B at 1
the name of 1 has the addresses 2
1a answers 200 {"n":1}
    close 1a
    to A: HTTP/1.1 200 X; Content-Length: 7 "{\"n\":1}"
    release A at 1
A posts /v1/completions {"model":"m","prompt":"x2"}
    close 1b
    connect 1d at address 2
    book A at 1
1d accepts
    to 1d: POST /v1/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"prompt\":\"x2\"}"
1d answers 200 {"n":4}
    to A: HTTP/1.1 200 X; Content-Length: 7 "{\"n\":4}"
    release A at 1
A posts /v1/completions {"model":"m","prompt":"x3"}
    to 1d: POST /v1/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"prompt\":\"x3\"}"
    book A at 1
1d answers 200 {"n":5}
    to A: HTTP/1.1 200 X; Content-Length: 7 "{\"n\":5}"
    release A at 1
counters
    requests 5, 2xx 4, 5xx 1, refused no replica 1, connect failures 1, upstream reused 1
