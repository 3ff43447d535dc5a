# The answer to HEAD has a length and no body, whether it comes from a replica or from the router.
replicas 1
set other-paths pass

A connects
A sends "HEAD /upload HTTP/1.1\r\nHost: g\r\n\r\n"
    connect 1a
    book A at 1
1a accepts
    to 1a: HEAD /upload HTTP/1.1
1a sends "HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n"
    to A: HTTP/1.1 200 OK; Content-Length: 77
    release A at 1
A sends "HEAD /v1/chat/completions HTTP/1.1\r\nHost: g\r\n\r\n"
    to A: HTTP/1.1 405 Method Not Allowed; Content-Length: 31; allow: POST
A sends "HEAD /upload HTTP/1.1\r\nHost: g\r\n\r\n"
    to 1a: HEAD /upload HTTP/1.1
    book A at 1
1a sends "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    to A: HTTP/1.1 200 OK
    release A at 1
