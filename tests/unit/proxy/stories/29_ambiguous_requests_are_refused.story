# Requests that two parsers could read differently are refused and never forwarded: a length
# together with chunks, and a malformed chunk.
replicas 1

A connects
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    to A: HTTP/1.1 400 Bad Request; Content-Length: 119; Connection: close "{\"error\":{\"message\":\"Content-Length together with Transfer-Encoding\",\"type\":\"BadRequestError\",\"param\":null,\"code\":400}}"
    finish A
B connects
B sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd"
    to B: HTTP/1.1 400 Bad Request; Content-Length: 103; Connection: close "{\"error\":{\"message\":\"The chunked body is malformed.\",\"type\":\"BadRequestError\",\"param\":null,\"code\":400}}"
    finish B
counters
    requests 2, 4xx 2, invalid: malformed 2
