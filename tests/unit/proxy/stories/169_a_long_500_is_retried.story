# A 500 with a long body: its beginning is enough to ask another replica. If that gives the same
# long answer, the client gets it whole.
replicas 2
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 500 "boom\n"*2000
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2a answers 200 {"from":2}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
A posts /v1/completions {"model":"m","prompt":"x"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
    book A at 1
1a sends "HTTP/1.1 500 X\r\nContent-Length: 9000\r\n\r\n"
1a sends "boom\n"*1600
1a sends "boom\n"*200
    log upstream_failed then=moved to=10.0.0.2:8000
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
    release A at 1
    book A at 2
2a answers 500 "boom\n"*2000
    log upstream_failed then=answer
    to A: HTTP/1.1 500 X; Content-Length: 10000 "boom\nboom\nboom\nboom\nboom... 10000 bytes"
    log request
    release A at 2
outcomes
    1: error 2 in doubt 1
    2: ok 1 error 1 in doubt 1
