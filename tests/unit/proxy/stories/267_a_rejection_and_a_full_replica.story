# The first replica rejects the request and the other is full: the blame is unknown. The client gets
# the first answer, not the second, and the first replica is used as before.
replicas 2
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 400 {"error":"no chat template"}
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2a answers 503 {"error":"full"}
    log upstream_failed then=answer
    to A: HTTP/1.1 400 X; Content-Length: 28 "{\"error\":\"no chat template\"}"
    log request
    release A at 2
wait 2000
B connects
B posts /v1/completions {"model":"m","prompt":"y"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
    book B at 1
C connects
C posts /v1/completions {"model":"m","prompt":"y"}
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
    book C at 2
outcomes
    1: rejected 1
    2: busy 1
counters
    requests 3, retries 1, 4xx 1, upstream reused 2
