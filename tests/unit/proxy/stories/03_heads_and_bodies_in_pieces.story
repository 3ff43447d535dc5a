# Heads, bodies and answers may arrive in pieces of any size. The router joins them; no byte is
# lost, repeated or late.
replicas 1

A connects
A sends "POST /v1/completions HTTP/1.1\r\nHost: g"
A sends "rapevine\r\nContent-Length: 26\r\n\r"
A sends "\n{\"model\":\"m\","
A sends "\"prompt\":\"x\"}"
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a sends "HTTP/1.1 20"
1a sends "0 OK\r\nTransfer-Encoding: chunked\r\n\r\n3"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked
1a sends "\r\nab"
    to A: "2\r\nab\r\n"
1a sends "c\r\n0\r\n"
    to A: "1\r\nc\r\n"
1a sends "\r\n"
    to A: "0\r\n\r\n"
    release A at 1
