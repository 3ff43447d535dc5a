# A streamed body beyond 256 KiB is freed as it is sent, so the request cannot be retried.
replicas 2
set other-paths pass

A connects
A sends "PUT /upload HTTP/1.1\r\nHost: g\r\nContent-Length: 400001\r\n\r\n9"
    connect 1a
    book A at 1
1a accepts
    to 1a: PUT /upload HTTP/1.1; Content-Length: 400001 "9"
A sends "0123456789"*20000
    to 1a: "012345678901234567890123... 4095 bytes"
    to 1a: "567890123456789012345678... 16384 bytes"
    to 1a: "901234567890123456789012... 65536 bytes"
    to 1a: "567890123456789012345678... 65536 bytes"
    to 1a: "123456789012345678901234... 48449 bytes"
A sends "0123456789"*10000
    to 1a: "012345678901234567890123... 17087 bytes"
    to 1a: "789012345678901234567890... 65536 bytes"
    to 1a: "345678901234567890123456... 17377 bytes"
1a breaks
    close 1a
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 169; Connection: close "{\"error\":{\"message\":\"The replica failed before it answered. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    finish A
    release A at 1
A ends
    close A
counters
    requests 1, 5xx 1, refused bad gateway 1, upstream broken 1
