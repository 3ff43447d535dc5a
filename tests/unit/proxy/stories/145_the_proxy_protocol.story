# Behind a load balancer with the PROXY protocol each connection begins with the client's address,
# which is passed to engines and used for limits. The balancer's own connections (LOCAL, UNKNOWN)
# are served under its own address. A connection without the header is closed without an answer.
replicas 1
set proxy-protocol on
set connections-per-client-max 1
set client-head-timeout 2s
set client-idle-timeout 5s

A connects
A sends "PROXY TCP4 198.51.100.9 192.0.2.7 56324 80\r\nPOST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"x\"}"
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
B connects
B sends "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc6\x33\x64\x09"
B sends "\xc0\x00\x02\x07\xdc\x04\x00\x50GET /nowhere HTTP/1.1\r\nHost: g\r\n\r\n"
    to B: HTTP/1.1 429 Too Many Requests; Content-Length: 173; retry-after: 1; x-grapevine-limit: connections-per-client-max; Connection: close "{\"error\":{\"message\":\"Too many connections of one client. Provider returned error 429 (too many requests): try again later.\",\"type\":\"RateLimitError\",\"param\":null,\"code\":429}}"
    log request
    finish B
A ends
    close A
C connects
C sends "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"
D connects
D sends "PROXY UNKNOWN\r\nGET /nowhere HTTP/1.1\r\nHost: g\r\n\r\n"
    to D: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
E connects
E gets /nowhere
    log proxy_header_refused
    reset E
F connects
F sends "GET"
    reset F
G connects
G sends "PROXY TC"
H connects
H sends "PROXY TCP4 198.51.100.9 192.0.2.7 1 2\r\n"
wait 2000
    close G
    close B
wait 3000
    close 1a
    close C
    close D
    close H
counters
    requests 2, 2xx 1, 4xx 1, invalid: path 1, of one client 1, PROXY headers refused 2, client time-outs 1
