# An answer with a length is cut: the client gets fewer bytes than announced, then the end of the
# connection.
replicas 1

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a sends "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"
    to A: HTTP/1.1 200 OK; Content-Length: 10 "abc"
1a ends
    close 1a
    log upstream_failed then=cut
    log request end=engine_failed reason=broken
    close A
    release A at 1
