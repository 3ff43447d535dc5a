# A request kills an engine's core (SGLang). The stream next to it stalls until the server ends 4 s
# later, and gets an error event. The request is a suspect, and is not sent to a replica that serves
# another request.
replicas 2
engines sglang
set health-interval 1h
set scrape-interval 1h
set watchdog 3s
set decode-weight 0.25
probes

start
    connect 1a
    connect 2a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
    log replica_models_unknown
2a accepts
    to 2a: GET /health HTTP/1.1
2a answers 200 ok
    log replica_up
    to 2a: GET /v1/models HTTP/1.1
2a answers 404 {}
    log replica_models_unknown
wait 50
    to 1a: GET /metrics HTTP/1.1
    to 2a: GET /metrics HTTP/1.1
1a answers 404 {}
    log replica_metrics_unknown
2a answers 404 {}
    log replica_metrics_unknown
A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 81 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1b streams
1b says "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "30\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\r\n"
B connects
B posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 2b
    book B at 2
2b accepts
    to 2b: POST /v1/chat/completions HTTP/1.1; Content-Length: 81 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"messages\":[]}"
2b streams
2b says "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"
    to B: HTTP/1.1 200 OK; Transfer-Encoding: chunked "30\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\r\n"
C connects
C posts /v1/completions {"model":"m","prompt":[5000]}
    connect 2c
    book C at 2
2c accepts
    to 2c: POST /v1/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"prompt\":[5000]}"
wait 2000
    to 1a: GET /server_info HTTP/1.1
    to 2a: GET /server_info HTTP/1.1
    connect 1c
    connect 2d
1b says "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"
    to A: "30\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\r\n"
wait 2000
    log replica_stalled
1b says "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"
    to A: "30\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\r\n"
wait 600
1b says "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"
    to A: "30\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\r\n"
wait 300
2a ends
    close 2a
    connect 2e
wait 200
    close 1a
    connect 1d
2b ends
    close 2b
    log upstream_failed then=error_event
    to B: "b1\r\ndata: {\"error\":{\"message\":\"The replica failed: its answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    log request end=engine_failed reason=broken
    close B
    release B at 2
2c ends
    close 2c
    log poison_suspect replicas=10.0.0.2:8000
    log upstream_failed then=refused
    to C: HTTP/1.1 502 Bad Gateway; Content-Length: 245 "{\"error\":{\"message\":\"An engine died after this request. The only other engine has other requests, so the router does not send it there. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release C at 2
wait 1000
    close 1c
    close 2d
    connect 1e
    connect 2f
