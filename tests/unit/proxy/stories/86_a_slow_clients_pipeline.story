# The next pipelined request starts when the client's kernel has accepted the whole previous answer,
# and no earlier.
replicas 1

A connects
A gets /v1/responses/r1
    connect 1a
    book A at 1
1a accepts
    to 1a: GET /v1/responses/r1 HTTP/1.1
A takes nothing
1a answers 200 {"id":"r1"}
    queue for A: 165 bytes
    release A at 1
A gets /v1/responses/r2
wait 1000
A takes all
    later to A: HTTP/1.1 200 X; Content-Length: 11 "{\"id\":\"r1\"}"
    to 1a: GET /v1/responses/r2 HTTP/1.1
    book A at 1
1a answers 200 {"id":"r2"}
    to A: HTTP/1.1 200 X; Content-Length: 11 "{\"id\":\"r2\"}"
    release A at 1
