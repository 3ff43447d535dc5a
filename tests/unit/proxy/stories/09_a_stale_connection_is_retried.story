# An engine may close a kept connection just as a request is sent on it. This is no failure of the
# replica: the router sends the request again on a fresh connection, under the same booking.
replicas 1

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
A posts /v1/completions {"model":"m","prompt":"y"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
    book A at 1
1a ends
    close 1a
    connect 1b
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
1b answers 200 {"n":2}
    to A: HTTP/1.1 200 X; Content-Length: 7 "{\"n\":2}"
    release A at 1
counters
    requests 2, 2xx 2, upstream reused 1, upstream stale 1
