# A client, identified by its address, may have connections-per-client-max connections; further
# connections get 429. An IPv6 /64 is one client. No other client's connection is closed for a
# refused one.
replicas 1
set connections-per-client-max 2
set connections-max 3

A connects from 192.0.2.1
B connects from 192.0.2.1
C connects from 192.0.2.1
    to C: HTTP/1.1 429 Too Many Requests; Content-Length: 173; retry-after: 1; x-grapevine-limit: connections-per-client-max; Connection: close "{\"error\":{\"message\":\"Too many connections of one client. Provider returned error 429 (too many requests): try again later.\",\"type\":\"RateLimitError\",\"param\":null,\"code\":429}}"
    log request
    finish C
C ends
    close C
D connects from 192.0.2.2
B ends
    close B
E connects from 192.0.2.1
wait 100
F connects from 2001:db8:0:1::1
    close A
wait 100
G connects from 2001:db8:0:1:ffff::2
    close D
H connects from 2001:db8:0:1::3
    to H: HTTP/1.1 429 Too Many Requests; Content-Length: 173; retry-after: 1; x-grapevine-limit: connections-per-client-max; Connection: close "{\"error\":{\"message\":\"Too many connections of one client. Provider returned error 429 (too many requests): try again later.\",\"type\":\"RateLimitError\",\"param\":null,\"code\":429}}"
    log request
    finish H
counters
    of one client 2, evicted 2
