# A head must be complete client-head-timeout after its first byte, and each piece of a body must
# follow within client-body-timeout, else the client gets 408. A connection without any byte is
# closed silently.
replicas 1
set client-head-timeout 2s
set client-body-timeout 3s
set client-idle-timeout 5s

A connects
A sends "POST /v1/completions HTTP/1.1\r\n"
wait 1500
A sends "Host: g\r\n"
wait 450
wait 50
    to A: HTTP/1.1 408 Request Timeout; Content-Length: 198; x-grapevine-limit: client-head-timeout; Connection: close "{\"error\":{\"message\":\"The request did not arrive in time (client-head-timeout). Provider returned error 408 (request timeout): try again later.\",\"type\":\"RequestTimeoutError\",\"param\":null,\"code\":408}}"
    log request
    finish A
B connects
B sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 100\r\n\r\n"
A ends
    close A
wait 2900
B sends "a"
wait 3000
    to B: HTTP/1.1 408 Request Timeout; Content-Length: 198; x-grapevine-limit: client-body-timeout; Connection: close "{\"error\":{\"message\":\"The request did not arrive in time (client-body-timeout). Provider returned error 408 (request timeout): try again later.\",\"type\":\"RequestTimeoutError\",\"param\":null,\"code\":408}}"
    log request
    finish B
B ends
    close B
C connects
wait 4950
wait 50
    close C
counters
    requests 2, 4xx 2, client time-outs 2
