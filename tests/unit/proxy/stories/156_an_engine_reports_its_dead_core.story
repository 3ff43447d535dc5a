# vLLM reports in a 500 that a request killed its core, and exits. The request is sent to one other
# engine, which dies too: the router answers 502, and no third engine gets it, however soon that
# was. Two engines that end together may share a failing host, but these lived on to report it.
replicas 3

A connects
A posts /v1/chat/completions {"model":"m","messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
1a answers 500 {"error":{"message":"EngineCore encountered an issue. See stack trace (above) for the root cause.","type":"InternalServerError","param":null,"code":500}}
    log upstream_failed then=moved to=10.0.0.2:8000
    release A at 1
    book A at 2
wait 250
    connect 2a
2a accepts
    to 2a: POST /v1/chat/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
2a answers 500 {"error":{"message":"EngineCore encountered an issue. See stack trace (above) for the root cause.","type":"InternalServerError","param":null,"code":500}}
    log poison replicas=10.0.0.1:8000,10.0.0.2:8000
    log upstream_failed then=refused
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 132; x-should-retry: false "{\"error\":{\"message\":\"Engines died after this request. It is not sent to another.\",\"type\":\"BadGatewayError\",\"param\":null,\"code\":502}}"
    log request
    release A at 2
B connects
B posts /v1/chat/completions {"model":"m","messages":[]}
    to B: HTTP/1.1 502 Bad Gateway; Content-Length: 132; x-should-retry: false "{\"error\":{\"message\":\"Engines died after this request. It is not sent to another.\",\"type\":\"BadGatewayError\",\"param\":null,\"code\":502}}"
    log request
