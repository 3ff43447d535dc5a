# A router listed as another router's replica would create a loop. The Via field shows it: 508, and
# one log line a minute.
replicas 1

A connects
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nVia: 1.1 grapevine-5a5a5a5a5a5a5a5a\r\nContent-Length: 2\r\n\r\n{}"
    log request_loop
    to A: HTTP/1.1 508 Loop Detected; Content-Length: 219; x-should-retry: false; Connection: close "{\"error\":{\"message\":\"The request came back to this router. One of its replicas is a router or leads to one: use only engines as replicas (gvctl replicas lists them).\",\"type\":\"LoopDetectedError\",\"param\":null,\"code\":508}}"
    log request
    finish A
B connects
B sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nVia: 1.1 grapevine-000000000000000a, 1.1 grapevine-000000000000000b, 1.1 grapevine-000000000000000c, 1.1 grapevine-000000000000000d\r\nContent-Length: 2\r\n\r\n{}"
    to B: HTTP/1.1 508 Loop Detected; Content-Length: 213; x-should-retry: false; Connection: close "{\"error\":{\"message\":\"The request passed 4 routers. One of their replicas is a router or leads to one: use only engines as replicas (gvctl replicas lists them).\",\"type\":\"LoopDetectedError\",\"param\":null,\"code\":508}}"
    log request
    finish B
wait 60000
    close A
    close B
C connects
C sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nVia: 1.1 grapevine-5a5a5a5a5a5a5a5a\r\nContent-Length: 2\r\n\r\n{}"
    log request_loop
    to C: HTTP/1.1 508 Loop Detected; Content-Length: 219; x-should-retry: false; Connection: close "{\"error\":{\"message\":\"The request came back to this router. One of its replicas is a router or leads to one: use only engines as replicas (gvctl replicas lists them).\",\"type\":\"LoopDetectedError\",\"param\":null,\"code\":508}}"
    log request
    finish C
D connects
D sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nVia: 1.1 nginx, 1.0 x (a comment), 1.1 grapevine-000000000000000a, 1.1 grapevine-000000000000000b, 1.1 grapevine-000000000000000c\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"x\"}"
    connect 1a
    book D at 1
counters
    requests 4, 5xx 3, refused loop 3
