# Each replica is asked once. The client gets the last 404.
replicas 4

A connects
A gets /v1/responses/r3
    connect 1a
    book A at 1
1a accepts
    to 1a: GET /v1/responses/r3 HTTP/1.1
1a answers 404 {"error":"not at 1"}
    connect 4a
    release A at 1
    book A at 4
4a accepts
    to 4a: GET /v1/responses/r3 HTTP/1.1
4a answers 404 {"error":"not at 4"}
    connect 2a
    release A at 4
    book A at 2
2a accepts
    to 2a: GET /v1/responses/r3 HTTP/1.1
2a answers 404 {"error":"not at 2"}
    connect 3a
    release A at 2
    book A at 3
3a accepts
    to 3a: GET /v1/responses/r3 HTTP/1.1
3a answers 404 {"error":"not at 3"}
    to A: HTTP/1.1 404 X; Content-Length: 20 "{\"error\":\"not at 3\"}"
    log request
    release A at 3
