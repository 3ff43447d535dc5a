# A request that may change something (here: a cancelled response) is not sent twice once a replica
# has seen it.
replicas 2

A connects
A sends "POST /v1/responses/r1/cancel HTTP/1.1\r\nHost: g\r\nContent-Length: 0\r\n\r\n"
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/responses/r1/cancel HTTP/1.1; Content-Length: 0
1a breaks
    close 1a
    log upstream_failed
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 111 "{\"error\":{\"message\":\"The replica failed before it answered.\",\"type\":\"BadGatewayError\",\"param\":null,\"code\":502}}"
    log request
    release A at 1
