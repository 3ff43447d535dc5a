# The peer is avoided because of 500s. The first rejection goes to its client: it is as likely the
# request's fault. The next rejection, of another request, is rather the replica's fault, and counts
# as a failure like others: the peer is asked despite its back-off.
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
2a answers 500 {"error":"broken"}
    log upstream_failed then=moved to=10.0.0.1:8000
    connect 1b
    release A at 2
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
1b answers 200 {"choices":[]}
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 1
A posts /v1/completions {"model":"m","prompt":"b"}
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"b\"}"
    book A at 2
2a answers 500 {"error":"broken"}
    log upstream_failed then=moved to=10.0.0.1:8000
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"b\"}"
    release A at 2
    book A at 1
1b answers 200 {"choices":[]}
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 1
A posts /v1/completions {"model":"m","prompt":"c"}
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"c\"}"
    book A at 2
2a answers 500 {"error":"broken"}
    log upstream_failed then=moved to=10.0.0.1:8000
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"c\"}"
    release A at 2
    book A at 1
1b answers 200 {"choices":[]}
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 1
A posts /v1/completions {"model":"m","prompt":"d"}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"d\"}"
    book A at 1
1b answers 422 {"detail":"Unprocessable"}
    to A: HTTP/1.1 422 X; Content-Length: 26 "{\"detail\":\"Unprocessable\"}"
    log request
    release A at 1
A posts /v1/completions {"model":"m","prompt":"e"}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"e\"}"
    book A at 1
1b answers 422 {"detail":"Unprocessable"}
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"e\"}"
    release A at 1
    book A at 2
2a answers 200 {"choices":[]}
    log replica_rejects
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 2
outcomes
    1: ok 3 rejected 2
    2: ok 1 error 3 in doubt 1
counters
    requests 6, retries 4, 2xx 4, 4xx 1, upstream reused 7
