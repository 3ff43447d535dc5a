# upstream-connections-max is the router's own limit, so the replica is not blamed. The router uses
# another replica; if there is none, the request waits.
replicas 2
set upstream-connections-max 1

A connects
B connects
C connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
B posts /v1/completions {"model":"m","prompt":"y"}
    connect 2a
    book B at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
C posts /v1/completions {"model":"m","prompt":"z"}
1a answers 200 {"usage":{"prompt_tokens":1,"completion_tokens":1}}
    to A: HTTP/1.1 200 X; Content-Length: 51 "{\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1}}"
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"z\"}"
    release A at 1
    book C at 1
1a answers 200 {}
    to C: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release C at 1
counters
    requests 3, 2xx 2, upstream reused 1
