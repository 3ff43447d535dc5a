# An engine may answer before the body is read. If there is no memory for the rest of the body, both
# are cut.
replicas 1
set other-paths pass
set buffered-bytes-max 64KiB

A connects
A sends "PUT /upload HTTP/1.1\r\nHost: g\r\nContent-Length: 200000\r\n\r\nabc"
    connect 1a
    book A at 1
1a accepts
    to 1a: PUT /upload HTTP/1.1; Content-Length: 200000 "abc"
1a sends "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nearly"
    to A: HTTP/1.1 200 OK; Content-Length: 100; Connection: close "early"
1a takes nothing
A sends "x"*100000
    queue for 1a: 4093 bytes
    close A
    close 1a
    log request end=refused reason=memory limit=buffered-bytes-max
    release A at 1
counters
    requests 1, 2xx 1, cut: refused 1
