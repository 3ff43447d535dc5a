# Mistakes and probes of clients have their own counters, apart from the router's refusals, and
# cause no log line. Neither does an unknown method (501) or a version of HTTP (505).
replicas 1
A connects
A gets /nowhere
    to A: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
A gets /v1/chat/completions
    to A: HTTP/1.1 405 Method Not Allowed; Content-Length: 31; allow: POST "{\"detail\":\"Method Not Allowed\"}"
A sends "BREW / HTTP/1.1\r\nHost: g\r\n\r\n"
    to A: HTTP/1.1 501 Not Implemented; Content-Length: 100; x-should-retry: false; Connection: close "{\"error\":{\"message\":\"method is not supported\",\"type\":\"NotImplementedError\",\"param\":null,\"code\":501}}"
    finish A
B connects
B sends "GET / HTTP/3.0\r\nHost: g\r\n\r\n"
    to B: HTTP/1.1 505 HTTP Version Not Supported; Content-Length: 108; x-should-retry: false; Connection: close "{\"error\":{\"message\":\"HTTP version other than 1.0 and 1.1\",\"type\":\"BadRequestError\",\"param\":null,\"code\":505}}"
    finish B
C connects
C sends "GET /\r\n\r\n"
    to C: HTTP/1.1 400 Bad Request; Content-Length: 89; Connection: close "{\"error\":{\"message\":\"malformed target\",\"type\":\"BadRequestError\",\"param\":null,\"code\":400}}"
    finish C
D connects
D sends "POST /v1/models HTTP/1.1\r\nHost: g\r\n\r\n"
    to D: HTTP/1.1 405 Method Not Allowed; Content-Length: 31; allow: GET, HEAD "{\"detail\":\"Method Not Allowed\"}"
E connects
E sends "PUT /v1/completions HTTP/1.1\r\nHost: g\r\n\r\n"
    to E: HTTP/1.1 405 Method Not Allowed; Content-Length: 31; allow: POST "{\"detail\":\"Method Not Allowed\"}"
counters
    requests 7, 4xx 5, 5xx 2, invalid: malformed 3, invalid: path 4
