# On an unknown path PUT and DELETE may be retried, because HTTP defines them as idempotent.
replicas 2
set other-paths pass

A connects
A sends "PUT /thing HTTP/1.1\r\nHost: g\r\nContent-Length: 3\r\n\r\nabc"
    connect 1a
    book A at 1
1a accepts
    to 1a: PUT /thing HTTP/1.1; Content-Length: 3 "abc"
1a breaks
    close 1a
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2a
    release A at 1
    book A at 2
wait 250
2a accepts
    to 2a: PUT /thing HTTP/1.1; Content-Length: 3 "abc"
2a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 2
A sends "DELETE /thing HTTP/1.1\r\nHost: g\r\n\r\n"
    connect 1b
    book A at 1
1b accepts
    to 1b: DELETE /thing HTTP/1.1
1b ends
    close 1b
    log upstream_failed then=moved to=10.0.0.2:8000
    to 2a: DELETE /thing HTTP/1.1
    release A at 1
    book A at 2
wait 250
counters
    requests 2, retries 2, 2xx 1, upstream broken 2, upstream reused 1
