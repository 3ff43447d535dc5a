# Limits on requests: the head (431), a body by its announced length (413), and a longer body in
# chunks (413).
replicas 1
set head-bytes-max 1KiB
set body-bytes-max 1KiB

A connects
A sends "GET /v1/models HTTP/1.1\r\nHost: g\r\nX: "
A sends "x"*1024
    to A: HTTP/1.1 431 Request Header Fields Too Large; Content-Length: 90; x-grapevine-limit: head-bytes-max; Connection: close "{\"error\":{\"message\":\"head is too large\",\"type\":\"BadRequestError\",\"param\":null,\"code\":431}}"
    finish A
B connects
B sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 1025\r\n\r\n"
    to B: HTTP/1.1 413 Content Too Large; Content-Length: 114; x-grapevine-limit: body-bytes-max; Connection: close "{\"error\":{\"message\":\"The request body is too large.\",\"type\":\"RequestEntityTooLargeError\",\"param\":null,\"code\":413}}"
    log request
    finish B
C connects
C sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n"
C sends "200\r\n"
C sends "x"*512
C sends "\r\n201\r\n"
C sends "x"*513
    to C: HTTP/1.1 413 Content Too Large; Content-Length: 114; x-grapevine-limit: body-bytes-max; Connection: close "{\"error\":{\"message\":\"The request body is too large.\",\"type\":\"RequestEntityTooLargeError\",\"param\":null,\"code\":413}}"
    log request
    finish C
counters
    requests 3, 4xx 3, invalid: malformed 1
