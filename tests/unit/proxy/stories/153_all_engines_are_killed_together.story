# All engines of a host are killed. A request without a token lost two of them within a second,
# which is no sign of poison. It is sent to no third engine, but is served when its client repeats
# it.
replicas 3

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
wait 200
2a ends
    close 2a
    log poison_suspect replicas=10.0.0.1:8000,10.0.0.2:8000
    log upstream_failed then=refused
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 235 "{\"error\":{\"message\":\"Engines died after this request, maybe not because of it. The router does not send it to another engine. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 2
B connects
B posts /v1/completions {"model":"m","prompt":"a"}
    connect 2b
    book B at 2
2b refuses
    close 2b
    log upstream_failed then=moved to=10.0.0.1:8000
    connect 1b
    release B at 2
    book B at 1
1b refuses
    close 1b
    log upstream_failed then=moved to=10.0.0.3:8000
    connect 3a
    release B at 1
    book B at 3
3a accepts
    to 3a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
3a answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 3
counters
    requests 2, retries 3, 2xx 1, 5xx 1, refused suspect 1, connect failures 2, upstream broken 2
