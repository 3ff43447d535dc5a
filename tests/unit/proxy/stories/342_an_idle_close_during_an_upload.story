# The time runs from the last byte of the request, or from the first if it is not sent whole: the
# upload itself reveals a connection that the engine had closed.
replicas 1
set other-paths pass

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
A sends "PUT /files/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345"
    to 1a: PUT /files/1 HTTP/1.1; Content-Length: 10 "12345"
    book A at 1
wait 150
A sends "67890"
    to 1a: "67890"
wait 50
1a breaks
    close 1a
    connect 1b
1b accepts
    to 1b: PUT /files/1 HTTP/1.1; Content-Length: 10 "1234567890"
1b answers 200 {"n":2}
    to A: HTTP/1.1 200 X; Content-Length: 7 "{\"n\":2}"
    release A at 1
A sends "PUT /files/2 HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345"
    to 1b: PUT /files/2 HTTP/1.1; Content-Length: 10 "12345"
    book A at 1
wait 100
1b ends
    close 1b
    connect 1c
1c accepts
    to 1c: PUT /files/2 HTTP/1.1; Content-Length: 10 "12345"
A sends "67890"
    to 1c: "67890"
1c answers 200 {"n":3}
    to A: HTTP/1.1 200 X; Content-Length: 7 "{\"n\":3}"
    release A at 1
A sends "PUT /files/3 HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345"
    to 1c: PUT /files/3 HTTP/1.1; Content-Length: 10 "12345"
    book A at 1
wait 150
1c ends
    close 1c
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 161; Connection: close "{\"error\":{\"message\":\"No replica answered (1 tried). Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    finish A
    release A at 1
counters
    requests 4, 2xx 3, 5xx 1, refused bad gateway 1, upstream broken 1, upstream reused 3, upstream stale 2
