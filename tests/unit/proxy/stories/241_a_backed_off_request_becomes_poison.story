# A request backs off before its third attempt. Meanwhile an equal request of another client kills
# its second engine: the request is poison when its time comes, and the chosen engine never gets it.
replicas 6
engines sglang

A connects
A posts /v1/completions {"model":"m","prompt":[5000]}
    connect 6a
    book A at 6
6a accepts
    to 6a: POST /v1/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"prompt\":[5000]}"
B connects
B posts /v1/completions {"model":"m","prompt":[5000]}
    connect 2a
    book B at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"prompt\":[5000]}"
wait 5200
2a ends
    close 2a
    log poison_suspect replicas=10.0.0.2:8000
    log upstream_failed then=moved to=10.0.0.1:8000
    release B at 2
    book B at 1
wait 250
    connect 1a
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"prompt\":[5000]}"
wait 5200
6a answers 503 {}
    log upstream_failed then=moved to=10.0.0.5:8000
    connect 5a
    release A at 6
    book A at 5
5a accepts
    to 5a: POST /v1/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"prompt\":[5000]}"
5a answers 503 {}
    log upstream_failed then=moved to=10.0.0.3:8000
    release A at 5
    book A at 3
1a ends
    close 1a
    log poison replicas=10.0.0.2:8000,10.0.0.1:8000
    log upstream_failed then=refused
    to B: HTTP/1.1 502 Bad Gateway; Content-Length: 132; x-should-retry: false "{\"error\":{\"message\":\"Engines died after this request. It is not sent to another.\",\"type\":\"BadGatewayError\",\"param\":null,\"code\":502}}"
    log request
    release B at 1
wait 250
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 132; x-should-retry: false "{\"error\":{\"message\":\"Engines died after this request. It is not sent to another.\",\"type\":\"BadGatewayError\",\"param\":null,\"code\":502}}"
    log request
    release A at 3
counters
    requests 2, retries 3, 5xx 2, refused poison 2, upstream broken 2
