# A reused connection that ends at once was closed before the request arrived, so the request is
# sent to the same replica again. If the port refuses then, the process has died, perhaps of this
# request. It is sent to one other engine, on a fresh connection; if that dies too, to none.
replicas 4
set policy round_robin
set retries-max 3

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
B posts /v1/completions {"model":"m","prompt":[5000]}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"prompt\":[5000]}"
    book B at 1
wait 20
1a breaks
    close 1a
    connect 1b
1b refuses
    close 1b
    log upstream_failed then=moved to=10.0.0.4:8000
    release B at 1
    book B at 4
wait 250
    connect 4b
4b accepts
    to 4b: POST /v1/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"prompt\":[5000]}"
wait 20
4b breaks
    close 4b
    log poison_suspect replicas=10.0.0.1:8000,10.0.0.4:8000
    log upstream_failed then=refused
    to B: HTTP/1.1 502 Bad Gateway; Content-Length: 235 "{\"error\":{\"message\":\"Engines died after this request, maybe not because of it. The router does not send it to another engine. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release B at 4
counters
    requests 5, retries 1, 2xx 4, 5xx 1, refused suspect 1, connect failures 1, upstream broken 1, upstream reused 1, upstream stale 1
