# session-header names the field with a request's session.
replicas 4
set policy session
set session-header x-my-session

A connects
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nX-My-Session: one\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"x\"}"
    connect 2a
    book A at 2
B connects
B sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nX-My-Session: one\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"y\"}"
    connect 2b
    book B at 2
C connects
C sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nX-My-Session: two\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"x\"}"
    connect 3a
    book C at 3
D connects
D sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nX-My-Session: two\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"z\"}"
    connect 3b
    book D at 3
