# A client that closes its sending half counts as gone, and its answer is cut. If the answer ends
# with the connection, the cut is a reset: the client still reads, and would take it for complete.
replicas 1

A connects
A sends "POST /v1/completions HTTP/1.0\r\nHost: g\r\nContent-Length: 25\r\n\r\n{\"prompt\":\"x\",\"stream\":1}"
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 25 "{\"prompt\":\"x\",\"stream\":1}"
1a sends "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n"
    to A: HTTP/1.1 200 OK; Connection: close "one"
A ends
    reset A
    close 1a
    log request end=client_gone
    release A at 1
