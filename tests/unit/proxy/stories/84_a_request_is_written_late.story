# Request bytes that the engine's kernel does not accept yet are sent later, byte for byte, even if
# the client has left.
replicas 1

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a takes 20
1a accepts
    to 1a: "POST /v1/completions"
    queue for 1a: 279 bytes
1a takes 30
    later to 1a: " HTTP/1.1\r\nHost: 10.0.0.1:8000"
A ends
    close A
    close 1a
    log request end=client_gone
    release A at 1
1a takes all
B connects
B posts /v1/completions {"model":"m","prompt":"y"}
    connect 1b
    book B at 1
1b takes 100
1b accepts
    to 1b: "POST /v1/completions HTTP/1.1\r\nHost: 10.0.0.1:8000\r\nX-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: h"
    queue for 1b: 199 bytes
1b takes nothing
1b is deaf
1b ends
    close 1b
    log upstream_failed then=error
    to B: HTTP/1.1 502 Bad Gateway; Content-Length: 161 "{\"error\":{\"message\":\"No replica answered (1 tried). Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release B at 1
