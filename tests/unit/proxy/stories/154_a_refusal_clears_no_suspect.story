# A request killed an engine's core and is retried. The other engine refuses it because it is full,
# or because of a wrong key. It has not processed the request, so the request stays a suspect.
replicas 3
engines sglang

A connects
A posts /v1/completions {"model":"m","prompt":[5000]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"prompt\":[5000]}"
wait 5200
1a ends
    close 1a
    log poison_suspect replicas=10.0.0.1:8000
    log upstream_failed then=moved to=10.0.0.2:8000
    release A at 1
    book A at 2
wait 250
    connect 2a
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"prompt\":[5000]}"
2a answers 401 {"error":"no key"}
    to A: HTTP/1.1 401 X; Content-Length: 18 "{\"error\":\"no key\"}"
    log request
    release A at 2
replica 1 goes
    log replica_removed
replica 3 goes
    log replica_removed
B connects
B posts /v1/completions {"model":"m","prompt":[5000]}
    to B: HTTP/1.1 502 Bad Gateway; Content-Length: 245 "{\"error\":{\"message\":\"An engine died after this request. The only other engine has other requests, so the router does not send it there. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
counters
    requests 2, retries 1, 4xx 1, 5xx 1, refused suspect 1, upstream broken 1
