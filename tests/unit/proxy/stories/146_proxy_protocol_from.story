# proxy-protocol-from lists the balancers. Connections from other addresses begin with a request,
# and a PROXY header from them is not accepted.
replicas 1
set proxy-protocol on
set proxy-protocol-from 10.0.0.0/8,2001:db8::/32

A connects from 10.1.2.3
A sends "PROXY TCP4 198.51.100.9 10.1.2.3 1 2\r\nGET /nowhere HTTP/1.1\r\nHost: g\r\n\r\n"
    to A: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
B connects from 192.0.2.1
B gets /nowhere
    to B: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
B sends "PROXY TCP4 198.51.100.9 10.1.2.3 1 2\r\nGET /nowhere HTTP/1.1\r\nHost: g\r\n\r\n"
    to B: HTTP/1.1 400 Bad Request; Content-Length: 95; Connection: close "{\"error\":{\"message\":\"malformed HTTP version\",\"type\":\"BadRequestError\",\"param\":null,\"code\":400}}"
    finish B
C connects from 2001:db8::5
C gets /nowhere
    log proxy_header_refused
    reset C
counters
    requests 3, 4xx 3, invalid: malformed 1, invalid: path 2, PROXY headers refused 1
