# The router reads a request's session from its header, or from the body fields that clients use for
# it.
replicas 2
set policy session

A connects
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nX-Session-Id: one\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"x\"}"
    connect 2a
    book A at 2
B connects
B sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nX-Session-Id: one\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"y\"}"
    connect 2b
    book B at 2
C connects
C posts /v1/completions {"model":"m","prompt":"z","user":"two"}
    connect 1a
    book C at 1
D connects
D posts /v1/completions {"model":"m","prompt":"z","user":"two"}
    connect 1b
    book D at 1
