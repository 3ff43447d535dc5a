# What must not be done twice wants a fresh connection. An idle one that fills upstream-connections-max
# makes room for it: no limit is in the way of a replica that has nothing to do.
replicas 1
set upstream-connections-max 1
set other-paths pass

A connects
A gets /a
    connect 1a
    book A at 1
1a accepts
    to 1a: GET /a HTTP/1.1
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
A posts /deed {}
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
