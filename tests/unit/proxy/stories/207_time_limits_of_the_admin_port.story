# On the admin port and the probe port a connection has 20 s for a whole head, and as long between
# two requests.
replicas 1

A connects to the probe port
B connects to the admin port
B sends "GET /healthz HT"
C connects
wait 15000
D connects to the probe port
wait 4900
D gets /healthz
    to D: HTTP/1.1 200 OK; Content-Length: 3 "ok\n"
wait 100
    close A
    to B: HTTP/1.1 408 Request Timeout; Content-Length: 134; Connection: close "{\"error\":{\"message\":\"The request did not arrive in time (client-head-timeout).\",\"type\":\"RequestTimeoutError\",\"param\":null,\"code\":408}}"
    finish B
wait 15000
D gets /healthz
    to D: HTTP/1.1 200 OK; Content-Length: 3 "ok\n"
wait 19900
    close B
wait 100
    close D
