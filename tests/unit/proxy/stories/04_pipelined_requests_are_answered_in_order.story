# Pipelined requests are answered in order. A later request is sent to a replica only when the
# previous answer is written.
replicas 1

A connects
A sends "GET /v1/responses/r1 HTTP/1.1\r\nHost: g\r\n\r\nGET /nowhere HTTP/1.1\r\nHost: g\r\n\r\nGET /v1/responses/r2 HTTP/1.1\r\nHost: g\r\n\r\n"
    connect 1a
    book A at 1
1a accepts
    to 1a: GET /v1/responses/r1 HTTP/1.1
1a answers 200 {"id":"r1"}
    to A: HTTP/1.1 200 X; Content-Length: 11 "{\"id\":\"r1\"}"
    to A: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
    to 1a: GET /v1/responses/r2 HTTP/1.1
    release A at 1
    book A at 1
1a answers 200 {"id":"r2"}
    to A: HTTP/1.1 200 X; Content-Length: 11 "{\"id\":\"r2\"}"
    release A at 1
