# The replica rejects all requests of one client while its peer is full. Unchecked rejections are no
# evidence against the client, though each accepted request of the other client clears the replica.
# Once the peer has a free place, the next rejection is checked there.
replicas 2
A connects
B connects from 10.9.9.9
B posts /v1/completions {"model":"m","prompt":"long"}
    connect 1a
    book B at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"prompt\":\"long\"}"
A posts /v1/completions {"model":"m","prompt":"a"}
    connect 2a
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
2a answers 429 {"error":"full"}
    log upstream_failed then=moved to=10.0.0.1:8000
    connect 1b
    release A at 2
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
1b answers 403 {"detail":"Forbidden"}
    to A: HTTP/1.1 403 X; Content-Length: 22 "{\"detail\":\"Forbidden\"}"
    log request
    release A at 1
1a answers 200 {"choices":[]}
    to B: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release B at 1
B posts /v1/completions {"model":"m","prompt":"long"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"prompt\":\"long\"}"
    book B at 1
A posts /v1/completions {"model":"m","prompt":"b"}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"b\"}"
    book A at 1
1b answers 403 {"detail":"Forbidden"}
    to A: HTTP/1.1 403 X; Content-Length: 22 "{\"detail\":\"Forbidden\"}"
    log request
    release A at 1
1a answers 200 {"choices":[]}
    to B: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release B at 1
B posts /v1/completions {"model":"m","prompt":"long"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"prompt\":\"long\"}"
    book B at 1
A posts /v1/completions {"model":"m","prompt":"c"}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"c\"}"
    book A at 1
1b answers 403 {"detail":"Forbidden"}
    to A: HTTP/1.1 403 X; Content-Length: 22 "{\"detail\":\"Forbidden\"}"
    log request
    release A at 1
1a answers 200 {"choices":[]}
    to B: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release B at 1
B posts /v1/completions {"model":"m","prompt":"long"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"prompt\":\"long\"}"
    book B at 1
A posts /v1/completions {"model":"m","prompt":"d"}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"d\"}"
    book A at 1
1b answers 403 {"detail":"Forbidden"}
    to A: HTTP/1.1 403 X; Content-Length: 22 "{\"detail\":\"Forbidden\"}"
    log request
    release A at 1
1a answers 200 {"choices":[]}
    to B: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release B at 1
B posts /v1/completions {"model":"m","prompt":"long"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"prompt\":\"long\"}"
    book B at 1
A posts /v1/completions {"model":"m","prompt":"e"}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"e\"}"
    book A at 1
1b answers 403 {"detail":"Forbidden"}
    to A: HTTP/1.1 403 X; Content-Length: 22 "{\"detail\":\"Forbidden\"}"
    log request
    release A at 1
1a answers 200 {"choices":[]}
    to B: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release B at 1
B posts /v1/completions {"model":"m","prompt":"long"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"prompt\":\"long\"}"
    book B at 1
A posts /v1/completions {"model":"m","prompt":"f"}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"f\"}"
    book A at 1
1b answers 403 {"detail":"Forbidden"}
    to A: HTTP/1.1 403 X; Content-Length: 22 "{\"detail\":\"Forbidden\"}"
    log request
    release A at 1
1a answers 200 {"choices":[]}
    to B: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release B at 1
B posts /v1/completions {"model":"m","prompt":"long"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"prompt\":\"long\"}"
    book B at 1
A posts /v1/completions {"model":"m","prompt":"g"}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"g\"}"
    book A at 1
1b answers 403 {"detail":"Forbidden"}
    to A: HTTP/1.1 403 X; Content-Length: 22 "{\"detail\":\"Forbidden\"}"
    log request
    release A at 1
1a answers 200 {"choices":[]}
    to B: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release B at 1
B posts /v1/completions {"model":"m","prompt":"long"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"prompt\":\"long\"}"
    book B at 1
A posts /v1/completions {"model":"m","prompt":"h"}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"h\"}"
    book A at 1
1b answers 403 {"detail":"Forbidden"}
    to A: HTTP/1.1 403 X; Content-Length: 22 "{\"detail\":\"Forbidden\"}"
    log request
    release A at 1
1a answers 200 {"choices":[]}
    to B: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release B at 1
B posts /v1/completions {"model":"m","prompt":"long"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"prompt\":\"long\"}"
    book B at 1
A posts /v1/completions {"model":"m","prompt":"i"}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"i\"}"
    book A at 1
1b answers 403 {"detail":"Forbidden"}
    to A: HTTP/1.1 403 X; Content-Length: 22 "{\"detail\":\"Forbidden\"}"
    log request
    release A at 1
1a answers 200 {"choices":[]}
    to B: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release B at 1
wait 1000
A posts /v1/completions {"model":"m","prompt":"j"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"j\"}"
    book A at 1
1a answers 403 {"detail":"Forbidden"}
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"j\"}"
    release A at 1
    book A at 2
2a answers 200 {"choices":[]}
    log replica_rejects
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 2
outcomes
    1: ok 9 rejected 10
    2: ok 1 busy 1
counters
    requests 19, retries 2, 2xx 10, 4xx 9, upstream reused 18
