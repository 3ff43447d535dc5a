# A request body in chunks is forwarded with its length, since some engines cannot read chunks.
replicas 1

A connects
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\nd\r\n{\"model\":\"m\",\r\n"
A sends "d\r\n\"prompt\":\"x\"}\r\n0\r\n"
A sends "\r\n"
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
