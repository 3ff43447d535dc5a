# A GET could be repeated at any time, but is not once the client has part of the answer.
replicas 2

A connects
A gets /v1/responses/r1
    connect 1a
    book A at 1
1a accepts
    to 1a: GET /v1/responses/r1 HTTP/1.1
1a sends "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "3\r\nabc\r\n"
1a breaks
    close 1a
    log upstream_failed then=cut
    log request end=engine_failed reason=broken
    close A
    release A at 1
