# A 500 is in doubt until another replica has answered. The second replica breaks, or is silent
# until the timeout, and there is no third: the first replica is blamed. If the second replica finds
# a mistake in the request, or the client leaves meanwhile, no replica is blamed.
replicas 2
set upstream-first-token-timeout 1000ms
A connects
A posts /v1/completions {"model":"m","prompt":"x","stream":true}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"prompt\":\"x\",\"stream\":true}"
1a answers 500 {"error":"boom"}
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"prompt\":\"x\",\"stream\":true}"
2a ends
    close 2a
    log upstream_failed then=error
    to A: HTTP/1.1 500 Internal Server Error; Content-Length: 161 "{\"error\":{\"message\":\"No replica answered (2 tried). Provider returned error 500 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":500}}"
    log request
    release A at 2
outcomes
    1: error 1 in doubt 1
    2: broken 1
A posts /v1/completions {"model":"m","prompt":"x","stream":true}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"prompt\":\"x\",\"stream\":true}"
    book A at 1
1a answers 500 {"error":"boom"}
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2b
    release A at 1
    book A at 2
2b accepts
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"prompt\":\"x\",\"stream\":true}"
wait 1100
    close 2b
    log upstream_failed then=error
    to A: HTTP/1.1 500 Internal Server Error; Content-Length: 191; x-grapevine-limit: upstream-first-token-timeout "{\"error\":{\"message\":\"No replica answered (2 tried; upstream-first-token-timeout). Provider returned error 500 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":500}}"
    log request
    release A at 2
outcomes
    1: error 2 in doubt 1
    2: broken 2
A posts /v1/completions {"model":"m","prompt":"x","stream":true}
    connect 2c
    book A at 2
2c accepts
    to 2c: POST /v1/completions HTTP/1.1; Content-Length: 80 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"prompt\":\"x\",\"stream\":true}"
2c answers 500 {"error":"boom"}
    log upstream_failed then=moved to=10.0.0.1:8000
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 80 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"prompt\":\"x\",\"stream\":true}"
    release A at 2
    book A at 1
1a answers 422 {"error":"no such field"}
    to A: HTTP/1.1 422 X; Content-Length: 25 "{\"error\":\"no such field\"}"
    log request
    release A at 1
outcomes
    1: error 2 in doubt 1 rejected 1
    2: broken 2 in doubt 1
A posts /v1/completions {"model":"m","prompt":"x","stream":true}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 80 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"prompt\":\"x\",\"stream\":true}"
    book A at 1
1a answers 500 {"error":"boom"}
    log upstream_failed then=moved to=10.0.0.2:8000
    to 2c: POST /v1/completions HTTP/1.1; Content-Length: 80 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"prompt\":\"x\",\"stream\":true}"
    release A at 1
    book A at 2
A ends
    close A
    close 2c
    log request end=client_gone
    release A at 2
outcomes
    1: error 3 in doubt 1 rejected 1
    2: client gone 1 broken 2 in doubt 1
