# The same if a single replica gets the control request.
set engine-control-paths pass
replicas 1
A connects
A sends "POST /sleep HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 31\r\n\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\x56\xca\x49\x2d\x4b\xcd\x51\xb2\x32\xac\x05\x00\xad\x87\x1d\x9f\x0b\x00\x00\x00"
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /sleep HTTP/1.1; Content-Length: 11 "{\"level\":1}"
1a answers 200 ok
    to A: HTTP/1.1 200 X; Content-Length: 2 "ok"
    release A at 1
