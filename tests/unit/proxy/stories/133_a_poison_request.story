# A request kills an engine's core (SGLang: silence, then the end of all connections). The router
# sends it to one other, idle engine, which dies too. From then on it is poison: the router answers
# 502, and no third engine gets it. Other requests are served.
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
wait 5200
2a ends
    close 2a
    log poison replicas=10.0.0.1:8000,10.0.0.2:8000
    log upstream_failed then=refused
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 132; x-should-retry: false "{\"error\":{\"message\":\"Engines died after this request. It is not sent to another.\",\"type\":\"BadGatewayError\",\"param\":null,\"code\":502}}"
    log request
    release A at 2
B connects
B posts /v1/completions {"model":"m","prompt":[5000]}
    to B: HTTP/1.1 502 Bad Gateway; Content-Length: 132; x-should-retry: false "{\"error\":{\"message\":\"Engines died after this request. It is not sent to another.\",\"type\":\"BadGatewayError\",\"param\":null,\"code\":502}}"
    log request
C connects
C posts /v1/completions {"model":"m","prompt":[5001]}
    connect 2b
    book C at 2
2b refuses
    close 2b
    log upstream_failed then=moved to=10.0.0.1:8000
    connect 1b
    release C at 2
    book C at 1
1b refuses
    close 1b
    log upstream_failed then=moved to=10.0.0.3:8000
    connect 3a
    release C at 1
    book C at 3
3a accepts
    to 3a: POST /v1/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"prompt\":[5001]}"
3a answers 200 {}
    to C: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release C at 3
counters
    requests 3, retries 3, 2xx 1, 5xx 2, refused poison 2, connect failures 2, upstream broken 2
