# A client that reads only after its whole upload still gets the error: the router discards its
# bytes for up to 30 s and 256 MiB, or 2 s while the port is closed.
replicas 1
set body-bytes-max 1KiB

A connects
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 2000000\r\n\r\n"
    to A: HTTP/1.1 413 Content Too Large; Content-Length: 114; x-grapevine-limit: body-bytes-max; Connection: close "{\"error\":{\"message\":\"The request body is too large.\",\"type\":\"RequestEntityTooLargeError\",\"param\":null,\"code\":413}}"
    log request
    finish A
A sends "x"*1000000
wait 15000
A sends "x"*1000000
wait 10000
A ends
    close A
B connects
B sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 2000000\r\n\r\n"
    to B: HTTP/1.1 413 Content Too Large; Content-Length: 114; x-grapevine-limit: body-bytes-max; Connection: close "{\"error\":{\"message\":\"The request body is too large.\",\"type\":\"RequestEntityTooLargeError\",\"param\":null,\"code\":413}}"
    log request
    finish B
drain
wait 5000
the port closes
wait 1900
wait 100
    close B
