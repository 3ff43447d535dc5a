# Some servers send 408 on a connection that was idle too long, and close it. A request that crosses
# it is sent again on a fresh connection. The router closes the connection, whatever else the 408
# says, or the next answer on it would be taken for another request's.
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
wait 50
1a answers 408 {}
    close 1a
    connect 1b
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
1b answers 200 {"n":2}
    to A: HTTP/1.1 200 X; Content-Length: 7 "{\"n\":2}"
    release A at 1
A posts /v1/completions {"model":"m","prompt":"z","stream":true}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 80 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"prompt\":\"z\",\"stream\":true}"
    book A at 1
wait 100
1b sends "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    close 1b
    connect 1c
1c accepts
    to 1c: POST /v1/completions HTTP/1.1; Content-Length: 80 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"prompt\":\"z\",\"stream\":true}"
# Of a fresh connection it is an answer.
1c answers 408 {"message":"too slow"}
    close 1c
    to A: HTTP/1.1 408 X; Content-Length: 22 "{\"message\":\"too slow\"}"
    log request
    release A at 1
A posts /v1/completions {"model":"m","prompt":"u"}
    connect 1d
    book A at 1
1d accepts
    to 1d: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"u\"}"
1d answers 200 {"n":4}
    to A: HTTP/1.1 200 X; Content-Length: 7 "{\"n\":4}"
    release A at 1
# And of a reused one, if it comes late.
A posts /v1/completions {"model":"m","prompt":"v"}
    to 1d: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"v\"}"
    book A at 1
wait 150
1d answers 408 {"message":"too slow"}
    close 1d
    to A: HTTP/1.1 408 X; Content-Length: 22 "{\"message\":\"too slow\"}"
    log request
    release A at 1
# A stored response is asked for on such a connection, too.
A posts /v1/completions {"model":"m","prompt":"w"}
    connect 1e
    book A at 1
1e accepts
    to 1e: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"w\"}"
1e answers 200 {"n":5}
    to A: HTTP/1.1 200 X; Content-Length: 7 "{\"n\":5}"
    release A at 1
A gets /v1/responses/resp_1
    to 1e: GET /v1/responses/resp_1 HTTP/1.1
    book A at 1
1e answers 408 {}
    close 1e
    connect 1f
1f accepts
    to 1f: GET /v1/responses/resp_1 HTTP/1.1
1f answers 200 {"id":"resp_1"}
    to A: HTTP/1.1 200 X; Content-Length: 15 "{\"id\":\"resp_1\"}"
    release A at 1
counters
    requests 7, 2xx 5, 4xx 2, upstream reused 4, upstream stale 3
outcomes
    1: ok 5 rejected 2
