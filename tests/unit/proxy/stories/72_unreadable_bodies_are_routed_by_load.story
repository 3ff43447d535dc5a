# A body that the router cannot parse is routed by load under every policy; the engine reports the
# mistake. Two such requests of one session go to two replicas.
replicas 2
set policy session

A connects
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nX-Session-Id: one\r\nContent-Length: 9\r\n\r\n{\"model\":"
    connect 1a
    book A at 1
B connects
B sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nX-Session-Id: one\r\nContent-Length: 9\r\n\r\n{\"model\":"
    connect 2a
    book B at 2
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 9 "{\"model\":"
1a answers 400 {"error":"no JSON"}
    connect 2b
    release A at 1
    book A at 2
