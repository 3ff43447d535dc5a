# A client that closes its connection has left, even if it closes only its sending half. The router
# releases the engine at once, so that it stops computing, and the booking. Pipelined requests are
# not started. The same holds during an upload.
replicas 1
set other-paths pass

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
A ends
    close A
    close 1a
    log request end=client_gone
    release A at 1
B connects
B posts /v1/completions {"model":"m","prompt":"x"}
    connect 1b
    book B at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
B ends
    close B
    close 1b
    log request end=client_gone
    release B at 1
C connects
C sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"x\"}GET /never HTTP/1.1\r\nHost: g\r\n\r\n"
    connect 1c
    book C at 1
1c accepts
    to 1c: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
C ends
    close C
    close 1c
    log request end=client_gone
    release C at 1
D connects
D sends "PUT /upload HTTP/1.1\r\nHost: g\r\nContent-Length: 100\r\n\r\nhello"
    connect 1d
    book D at 1
1d accepts
    to 1d: PUT /upload HTTP/1.1; Content-Length: 100 "hello"
D breaks
    close D
    close 1d
    log request end=client_gone
    release D at 1
counters
    requests 4, clients gone 4
