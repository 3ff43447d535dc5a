# An idle connection to a replica is kept for upstream-keepalive, slightly less than engines keep
# theirs. If the engine closes it or sends unrequested bytes, the router drops it and blames no
# replica.
replicas 1
set upstream-keepalive 4s

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
wait 3950
wait 50
    close 1a
A posts /v1/completions {"model":"m","prompt":"y"}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
1b answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
1b ends
    close 1b
A posts /v1/completions {"model":"m","prompt":"z"}
    connect 1c
    book A at 1
1c accepts
    to 1c: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"z\"}"
1c answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
1c sends "HTTP/1.1 408 Request Time-out\r\n\r\n"
    close 1c
A posts /v1/completions {"model":"m","prompt":"z"}
    connect 1d
    book A at 1
1d accepts
    to 1d: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"z\"}"
1d sends "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
    close 1d
    to A: HTTP/1.1 200 OK; Content-Length: 2 "{}"
    release A at 1
A posts /v1/completions {"model":"m","prompt":"z"}
    connect 1e
    book A at 1
1e accepts
    to 1e: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"z\"}"
1e sends "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen"
    close 1e
    to A: HTTP/1.1 200 OK; Content-Length: 2 "{}"
    release A at 1
counters
    requests 5, 2xx 5
