# By default nobody is cut where nothing is known of the engine's speed: 300 s of silence.
replicas 1

A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
wait 299950
wait 50
    close 1a
    log upstream_failed
    to A: HTTP/1.1 504 Gateway Timeout; Content-Length: 107 "{\"error\":{\"message\":\"No replica answered (1 tried).\",\"type\":\"GatewayTimeoutError\",\"param\":null,\"code\":504}}"
    log request
    release A at 1
counters
    requests 1, 5xx 1, refused first token 1, upstream time-outs 1
