# An address that the name keeps stays in use, wherever it is in the list and whatever else changes.
# The two families of addresses arrive separately: a request need not wait for the second.
replicas 1
names

start
    look up 1
A connects
the name of 1 has the addresses 1 2 and more
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
the name of 1 has the addresses 3 1 4
A posts /v1/completions {"model":"m","prompt":"y"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
    book A at 1
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
counters
    requests 2, 2xx 2, upstream reused 1
