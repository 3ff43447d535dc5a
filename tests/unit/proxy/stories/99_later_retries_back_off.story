# The first retry is sent at once, the second after 20 to 200 ms. A client that leaves meanwhile
# leaves no state behind.
replicas 4
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 503 {"error":"busy"}
    log upstream_failed then=moved to=10.0.0.4:8000
    connect 4a
    release A at 1
    book A at 4
4a accepts
    to 4a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
4a answers 429 {"error":"too many"}
    log upstream_failed then=moved to=10.0.0.2:8000
    release A at 4
    book A at 2
wait 10
wait 190
    connect 2a
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2a answers 200 {"from":2}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
