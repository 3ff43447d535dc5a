# A session keeps its replica whatever its prompts: by any of the headers, or by the session in the
# JSON that Claude Code sends as its user. Requests without a session are routed by their prompt.
replicas 4
set policy session

A connects
A sends "POST /v1/messages HTTP/1.1\r\nHost: g\r\nContent-Length: 99\r\n\r\n{\"model\":\"m\",\"metadata\":{\"user_id\":\"{\\\"device_id\\\":\\\"d1\\\",\\\"session_id\\\":\\\"s-1\\\"}\"},\"prompt\":\"one\"}"
    connect 3a
    book A at 3
B connects
B sends "POST /v1/messages HTTP/1.1\r\nHost: g\r\nContent-Length: 99\r\n\r\n{\"model\":\"m\",\"metadata\":{\"user_id\":\"{\\\"session_id\\\":\\\"s-1\\\",\\\"device_id\\\":\\\"d2\\\"}\"},\"prompt\":\"two\"}"
    connect 3b
    book B at 3
C connects
C sends "POST /v1/messages HTTP/1.1\r\nHost: g\r\nX-Claude-Code-Session-Id: s-1\r\nContent-Length: 30\r\n\r\n{\"model\":\"m\",\"prompt\":\"three\"}"
    connect 3c
    book C at 3
D connects
D sends "POST /v1/messages HTTP/1.1\r\nHost: g\r\nsession_id: s-1\r\nContent-Length: 30\r\n\r\n{\"model\":\"m\",\"prompt\":\"three\"}"
    connect 3d
    book D at 3
E connects
E sends "POST /v1/messages HTTP/1.1\r\nHost: g\r\nContent-Length: 325\r\n\r\n{\"model\":\"m\",\"prompt\":\"three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three \"}"
    connect 1a
    book E at 1
F connects
F sends "POST /v1/messages HTTP/1.1\r\nHost: g\r\nContent-Length: 325\r\n\r\n{\"model\":\"m\",\"prompt\":\"three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three three \"}"
    connect 1b
    book F at 1
