# A body is refused when the port is already closed. The client may finish sending as usual, but
# shutdown does not wait half a minute for it: 2 s are enough.
replicas 1
set other-paths pass

A connects
A sends "PUT /upload HTTP/1.1\r\nHost: g\r\nContent-Length: 1000\r\n\r\nabc"
    connect 1a
    book A at 1
1a accepts
    to 1a: PUT /upload HTTP/1.1; Content-Length: 1000 "abc"
the port closes
1a answers 413 {"error":"too large"}
    close 1a
    to A: HTTP/1.1 413 X; Content-Length: 21; Connection: close "{\"error\":\"too large\"}"
    log request
    finish A
    release A at 1
wait 1900
A sends "def"
wait 100
    close A
counters
    requests 1, 4xx 1
