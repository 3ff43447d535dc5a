# A client waits for permission to send its body: the router grants it at once. Interim answers of
# engines are not forwarded.
replicas 1

A connects
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nExpect: 100-continue\r\nContent-Length: 26\r\n\r\n"
    to A: HTTP/1.1 100 Continue
A sends "{\"model\":\"m\",\"prompt\":\"x\"}"
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a sends "HTTP/1.1 100 Continue\r\n\r\n"
1a sends "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    to A: HTTP/1.1 200 OK; Content-Length: 2 "{}"
    release A at 1
