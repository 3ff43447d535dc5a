# A request may have killed two engines that end after it was sent. But a distant engine that ends
# within two round trips may have ended before the request arrived: the request killed nothing. The
# same holds for engines restarted in turn while a request is on its way.
replicas 5

a round trip takes 160
A connects
A posts /v1/chat/completions {"model":"m","messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
wait 321
1a breaks
    close 1a
    log upstream_failed then=moved to=10.0.0.3:8000
    release A at 1
    book A at 3
wait 1500
    connect 3a
3a accepts
    to 3a: POST /v1/chat/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
wait 321
3a breaks
    close 3a
    log poison replicas=10.0.0.1:8000,10.0.0.3:8000
    log upstream_failed then=refused
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 132; x-should-retry: false "{\"error\":{\"message\":\"Engines died after this request. It is not sent to another.\",\"type\":\"BadGatewayError\",\"param\":null,\"code\":502}}"
    log request
    release A at 3
B connects
B posts /v1/chat/completions {"model":"m","messages":[{}]}
    connect 1b
    book B at 1
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"messages\":[{}]}"
wait 160
1b breaks
    close 1b
    log upstream_failed then=moved to=10.0.0.4:8000
    connect 4a
    release B at 1
    book B at 4
wait 1500
4a accepts
    to 4a: POST /v1/chat/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"messages\":[{}]}"
wait 320
4a breaks
    close 4a
    log upstream_failed then=moved to=10.0.0.3:8000
    release B at 4
    book B at 3
wait 1500
    connect 3b
3b accepts
    to 3b: POST /v1/chat/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"messages\":[{}]}"
3b answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 3
