# The second replica is slow to answer. Meanwhile the first one, which rejects at once, seems idle,
# but it is unknown whether it is at fault: it is avoided until then.
replicas 2
A connects
B connects
C connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 403 {"error":"Forbidden"}
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
B posts /v1/completions {"model":"m","prompt":"x"}
    connect 2b
    book B at 2
2b accepts
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
C posts /v1/completions {"model":"m","prompt":"x"}
    connect 2c
    book C at 2
2c accepts
    to 2c: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2b answers 400 {"error":"bad"}
    to B: HTTP/1.1 400 X; Content-Length: 15 "{\"error\":\"bad\"}"
    log request
    release B at 2
2a answers 200 {"choices":[]}
    log replica_rejects
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 2
2c answers 200 {"choices":[]}
    to C: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release C at 2
outcomes
    1: rejected 1
    2: ok 2 rejected 1
