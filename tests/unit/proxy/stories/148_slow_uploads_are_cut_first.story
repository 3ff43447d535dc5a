# Unfinished uploads share buffered-bytes-max with all other buffers. When three quarters are in
# use, the upload that is slowest for its buffered bytes is cut, not the next sender. First B goes,
# which sent as much as A and then only a trickle; then A, which has become slower. Complete
# requests are kept, and so is C, which has nothing buffered.
replicas 1
set buffered-bytes-max 256KiB
set client-body-timeout 10m
set client-body-rate-min 0

A connects
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 100000\r\n\r\n{\"model\":\"m\",\"prompt\":\""
B connects
B sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 100000\r\n\r\n{\"model\":\"m\",\"prompt\":\""
C connects to the admin port
C sends "POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{"
C sends "x"*90000
A sends "x"*60000
B sends "x"*60000
wait 6000
A sends "x"*6000
B sends "x"
C sends "x"
wait 6000
A sends "x"*6000
B sends "x"
C sends "x"
D connects
D posts /v1/completions "{\"model\":\"m\",\"prompt\":\"xxxxxxxxxxxxxxxx"*1200
    connect 1a
    book D at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 46800 "{\"model\":\"m\",\"prompt\":\"x... 46800 bytes"
E connects
E gets /nowhere
    to B: HTTP/1.1 503 Service Unavailable; Content-Length: 181; retry-after: 1; x-grapevine-limit: buffered-bytes-max; Connection: close "{\"error\":{\"message\":\"Memory is short, and this body arrived too slowly. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
    finish B
    to E: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
B ends
    close B
wait 2000
F connects
F posts /v1/completions "{\"model\":\"m\",\"prompt\":\"xxxxxxxxxxxxxxxx"*1000
    connect 1b
    book F at 1
G connects
G gets /nowhere
    to A: HTTP/1.1 503 Service Unavailable; Content-Length: 181; retry-after: 1; x-grapevine-limit: buffered-bytes-max; Connection: close "{\"error\":{\"message\":\"Memory is short, and this body arrived too slowly. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
    finish A
    to G: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
A ends
    close A
D ends
    close D
    close 1a
    log request end=client_gone
    release D at 1
counters
    requests 6, 4xx 2, 5xx 2, invalid: path 2, refused slow upload 2, clients gone 1, not understood 2
