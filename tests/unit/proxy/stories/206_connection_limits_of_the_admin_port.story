# The admin port and the probe port have their own connection limits. Beyond them the router closes
# the connection that has been without a whole head longest: silent, kept alive, or with half a
# head. If none has been for 100 ms, it closes one whose body is incomplete, then one that does not
# read, then a new one. Connections that the router is serving stay; if there are no others, the new
# connection is reset.
replicas 1
admin-connections 4

A connects to the probe port
A gets /healthz
    to A: HTTP/1.1 200 OK; Content-Length: 3 "ok\n"
wait 1000
B connects to the probe port
B sends "GET /healthz HT"
wait 1000
C connects to the admin port
C sends "POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n{\"model\":"
D connects to the admin port
D sends "POST /replicas?replica=10.0.0.2:8000 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
    connect 2a
wait 1000
E connects to the probe port
    close A
E takes nothing
E gets /healthz
    queue for E: 130 bytes
F connects to the probe port
    close B
F gets /healthz
    to F: HTTP/1.1 200 OK; Content-Length: 3 "ok\n"
wait 100
G connects to the probe port
    close F
G sends "POST /replicas?replica=10.0.0.3:8000 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
    to G: HTTP/1.1 404 Not Found; Content-Length: 128 "{\"error\":{\"message\":\"This port serves only GET /healthz, /readyz and /metrics.\",\"type\":\"NotFoundError\",\"param\":null,\"code\":404}}"
H connects to the admin port
    close C
H sends "POST /replicas?replica=10.0.0.3:8000 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
    connect 3a
I connects to the admin port
    close E
I sends "POST /replicas?replica=10.0.0.4:8000 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
    connect 4a
J connects to the admin port
    close G
K connects to the admin port
    close J
K sends "POST /replicas?replica=10.0.0.5:8000 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
    connect 5a
L connects to the probe port
    reset L
M connects
M gets /nowhere
    to M: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
counters
    requests 1, 4xx 1, invalid: path 1, connections refused 1, evicted 7
