# A request that must not be done twice needs a fresh connection. The only allowed connection is
# idle: the router closes it, and the request is not refused.
replicas 1
set other-paths pass
set upstream-connections-max 1

A connects
A sends "GET /one HTTP/1.1\r\nHost: g\r\n\r\n"
    connect 1a
    book A at 1
1a accepts
    to 1a: GET /one HTTP/1.1
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
A sends "POST /deed HTTP/1.1\r\nHost: g\r\nContent-Length: 2\r\n\r\n{}"
    close 1a
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /deed HTTP/1.1; Content-Length: 2 "{}"
1b answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
counters
    requests 2, 2xx 2
