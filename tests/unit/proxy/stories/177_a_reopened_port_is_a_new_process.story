# An engine's port refused for a moment: the engine was restarted, and serves again. If it dies
# later, it had not been told to stop: a request that breaks it and then another engine is sent to
# no third.
replicas 3
set policy round_robin

A connects
A posts /v1/completions {"model":"m","prompt":"a"}
    connect 1a
    book A at 1
1a refuses
    close 1a
    log upstream_failed then=moved to=10.0.0.3:8000
    connect 3a
    release A at 1
    book A at 3
3a accepts
    to 3a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
3a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 3
wait 6000
    close 3a
A posts /v1/completions {"model":"m","prompt":"b"}
    connect 3b
    book A at 3
3b accepts
    to 3b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"b\"}"
3b answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 3
A posts /v1/completions {"model":"m","prompt":"poison"}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 31 "{\"model\":\"m\",\"prompt\":\"poison\"}"
wait 200
1b ends
    close 1b
    log upstream_failed then=moved to=10.0.0.2:8000
    release A at 1
    book A at 2
wait 250
    connect 2a
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 31 "{\"model\":\"m\",\"prompt\":\"poison\"}"
wait 1500
2a ends
    close 2a
    log poison replicas=10.0.0.1:8000,10.0.0.2:8000
    log upstream_failed then=refused
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 132; x-should-retry: false "{\"error\":{\"message\":\"Engines died after this request. It is not sent to another.\",\"type\":\"BadGatewayError\",\"param\":null,\"code\":502}}"
    log request
    release A at 2
