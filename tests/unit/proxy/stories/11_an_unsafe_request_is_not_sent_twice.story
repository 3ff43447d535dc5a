# A request that changes something, such as cancelling a response, is not sent twice once a replica
# has seen it. The router finds the response's replica with a GET. The request itself uses a fresh
# connection, because an engine may close a kept connection without showing whether it read the
# request.
replicas 2
A connects
A sends "POST /v1/responses/r1/cancel HTTP/1.1\r\nHost: g\r\nContent-Length: 0\r\n\r\n"
    connect 1a
    book A at 1
1a accepts
    to 1a: GET /v1/responses/r1 HTTP/1.1
1a answers 200 {"id":"r1"}
    connect 1b
    release A at 1
    book A at 1
1b accepts
    to 1b: POST /v1/responses/r1/cancel HTTP/1.1; Content-Length: 0
1b breaks
    close 1b
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 169 "{\"error\":{\"message\":\"The replica failed before it answered. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 1
counters
    requests 1, 5xx 1, refused bad gateway 1, upstream broken 1
A sends "POST /v1/responses/r1/cancel HTTP/1.1\r\nHost: g\r\nContent-Length: 0\r\n\r\n"
    connect 1c
    book A at 1
1c accepts
    to 1c: POST /v1/responses/r1/cancel HTTP/1.1; Content-Length: 0
1c answers 200 {"id":"r1"}
    to A: HTTP/1.1 200 X; Content-Length: 11 "{\"id\":\"r1\"}"
    release A at 1
A sends "POST /v1/responses/r1/cancel HTTP/1.1\r\nHost: g\r\nContent-Length: 0\r\n\r\n"
    connect 1d
    book A at 1
1d accepts
    to 1d: POST /v1/responses/r1/cancel HTTP/1.1; Content-Length: 0
1d breaks
    close 1d
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 169 "{\"error\":{\"message\":\"The replica failed before it answered. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 1
