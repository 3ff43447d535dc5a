# A connection breaks at replica 1, which goes on answering others, and then one at replica 2:
# neither died. Replica 2, reserved for the request after the first break, is released.
replicas 2
set policy round_robin

A connects
A posts /v1/completions {"model":"m","prompt":"a"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
wait 200
1a ends
    close 1a
    log upstream_failed then=moved to=10.0.0.2:8000
    release A at 1
    book A at 2
wait 250
    connect 2a
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
B connects
B posts /v1/completions {"model":"m","prompt":"b"}
    connect 1b
    book B at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"b\"}"
wait 600
1b answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 1
wait 600
2a ends
    close 2a
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 161 "{\"error\":{\"message\":\"No replica answered (2 tried). Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 2
wait 500
C connects
C posts /v1/completions {"model":"m","prompt":"c"}
    connect 2b
    book C at 2
D connects
D posts /v1/completions {"model":"m","prompt":"d"}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"d\"}"
    book D at 1
counters
    requests 4, retries 1, 2xx 1, 5xx 1, refused bad gateway 1, upstream broken 2, upstream reused 1
