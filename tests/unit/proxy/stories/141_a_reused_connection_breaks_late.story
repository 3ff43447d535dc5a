# A reused connection that ends at once was closed before the request arrived, so the request is
# sent again. If it ends 5 s later, the engine had the request, and may have died of it.
replicas 2
engines sglang
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
B connects
B posts /v1/completions {"model":"m","prompt":"b"}
    connect 2a
    book B at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"b\"}"
2a answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 2
C connects
C posts /v1/completions {"model":"m","prompt":[5000]}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"prompt\":[5000]}"
    book C at 1
wait 5200
    close 2a
1a ends
    close 1a
    log poison_suspect replicas=10.0.0.1:8000
    log upstream_failed then=refused
    to C: HTTP/1.1 502 Bad Gateway; Content-Length: 245 "{\"error\":{\"message\":\"An engine died after this request. The only other engine has other requests, so the router does not send it there. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release C at 1
counters
    requests 3, retries 1, 2xx 2, 5xx 1, refused suspect 1, upstream broken 1, upstream reused 1
