# A streamed body beyond 256 KiB is let go as it is sent: such a request has no second try.
replicas 2
set other-paths pass

A connects
A sends "PUT /upload HTTP/1.1\r\nHost: g\r\nContent-Length: 400000\r\n\r\n"
    connect 1a
    book A at 1
1a accepts
    to 1a: PUT /upload HTTP/1.1; Content-Length: 400000
A sends "0123456789"*20000
    to 1a: "012345678901234567890123... 16384 bytes"
    to 1a: "456789012345678901234567... 16384 bytes"
    to 1a: "890123456789012345678901... 65536 bytes"
    to 1a: "456789012345678901234567... 65536 bytes"
    to 1a: "012345678901234567890123... 36160 bytes"
A sends "0123456789"*10000
    to 1a: "012345678901234567890123... 29376 bytes"
    to 1a: "678901234567890123456789... 65536 bytes"
    to 1a: "234567890123456789012345... 5088 bytes"
1a breaks
    close 1a
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 111; Connection: close "{\"error\":{\"message\":\"The replica failed before it answered.\",\"type\":\"BadGatewayError\",\"param\":null,\"code\":502}}"
    log request
    finish A
    release A at 1
A ends
    close A
counters
    requests 1, 5xx 1, refused bad gateway 1, upstream broken 1
