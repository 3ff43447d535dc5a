# The first replica has another API key. Its rejection is checked at the other replica, which
# accepts the request. The first is avoided until its back-off of 5 s is over. Then a single request
# tries it and fails: the back-off doubles. The next trial succeeds: all is well.
replicas 2
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 401 {"error":"Unauthorized"}
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2a answers 200 {"choices":[]}
    log replica_rejects
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 2
outcomes
    1: rejected 1
    2: ok 1
A posts /v1/completions {"model":"m","prompt":"x"}
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
    book A at 2
2a answers 200 {"choices":[]}
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 2
wait 4900
    close 1a
    close 2a
A posts /v1/completions {"model":"m","prompt":"y"}
    connect 2b
    book A at 2
2b accepts
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
2b answers 200 {"choices":[]}
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 2
wait 200
B connects
B posts /v1/completions {"model":"m","prompt":"long"}
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"prompt\":\"long\"}"
    book B at 2
A posts /v1/completions {"model":"m","prompt":"y"}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
1b answers 401 {"error":"Unauthorized"}
    connect 2c
    release A at 1
    book A at 2
2c accepts
    to 2c: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
2c answers 200 {"choices":[]}
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 2
2b answers 200 {"choices":[]}
    to B: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release B at 2
wait 9900
    close 1b
    close 2c
    close 2b
B posts /v1/completions {"model":"m","prompt":"long"}
    connect 2d
    book B at 2
2d accepts
    to 2d: POST /v1/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"prompt\":\"long\"}"
A posts /v1/completions {"model":"m","prompt":"z"}
    connect 2e
    book A at 2
2e accepts
    to 2e: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"z\"}"
2e answers 200 {"choices":[]}
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 2
wait 200
A posts /v1/completions {"model":"m","prompt":"z"}
    connect 1c
    book A at 1
1c accepts
    to 1c: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"z\"}"
1c answers 200 {"choices":[]}
    log replica_accepts
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 1
A posts /v1/completions {"model":"m","prompt":"z"}
    to 1c: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"z\"}"
    book A at 1
1c answers 200 {"choices":[]}
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 1
outcomes
    1: ok 2 rejected 2
    2: ok 6
counters
    requests 9, retries 2, 2xx 8, upstream reused 3
