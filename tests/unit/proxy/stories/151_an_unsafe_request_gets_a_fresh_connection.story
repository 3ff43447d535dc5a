# If a used connection breaks, nobody knows whether the engine had closed it before the request
# arrived, or took the request and died. A request that must not be done twice is sent on a fresh
# connection, so there is no doubt, and it is not sent again.
replicas 1
set other-paths pass

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
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /deed HTTP/1.1; Content-Length: 2 "{}"
1b breaks
    close 1b
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 169 "{\"error\":{\"message\":\"The replica failed before it answered. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 1
