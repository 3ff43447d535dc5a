# An engine may answer, for example with 413, before it has read the whole body. The client gets the
# answer and its connection closes, because the rest of the body is not needed. A replica that stops
# accepting bytes may already have sent the reason.
replicas 1
set other-paths pass

A connects
A sends "PUT /upload HTTP/1.1\r\nHost: g\r\nContent-Length: 1000\r\n\r\nabc"
    connect 1a
    book A at 1
1a accepts
    to 1a: PUT /upload HTTP/1.1; Content-Length: 1000 "abc"
1a answers 413 {"error":"too large"}
    close 1a
    to A: HTTP/1.1 413 X; Content-Length: 21; Connection: close "{\"error\":\"too large\"}"
    log request
    finish A
    release A at 1
A ends
    close A
B connects
B sends "PUT /upload HTTP/1.1\r\nHost: g\r\nContent-Length: 1000\r\n\r\nabc"
    connect 1b
    book B at 1
1b accepts
    to 1b: PUT /upload HTTP/1.1; Content-Length: 1000 "abc"
1b is deaf
B sends "def"
1b answers 413 {"error":"too large"}
    close 1b
    to B: HTTP/1.1 413 X; Content-Length: 21; Connection: close "{\"error\":\"too large\"}"
    log request
    finish B
    release B at 1
B ends
    close B
C connects
C sends "PUT /upload HTTP/1.1\r\nHost: g\r\nContent-Length: 1000\r\n\r\nabc"
    connect 1c
    book C at 1
1c accepts
    to 1c: PUT /upload HTTP/1.1; Content-Length: 1000 "abc"
1c is deaf
C sends "def"
wait 2000
    close 1c
    log upstream_failed then=error
    to C: HTTP/1.1 502 Bad Gateway; Content-Length: 161; Connection: close "{\"error\":{\"message\":\"No replica answered (1 tried). Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    finish C
    release C at 1
