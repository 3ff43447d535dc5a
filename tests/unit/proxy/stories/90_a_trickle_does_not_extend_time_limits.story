# An engine answered early. The client does not read the answer, but sends a byte of its body now
# and then. The time limit for reading still applies.
replicas 1
set client-write-timeout 5s
set other-paths pass

A connects
A takes nothing
A sends "PUT /v1/files HTTP/1.1\r\nHost: g\r\nContent-Length: 100\r\n\r\nab"
    connect 1a
    book A at 1
1a accepts
    to 1a: PUT /v1/files HTTP/1.1; Content-Length: 100 "ab"
1a sends "HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\nearly"
    queue for A: 147 bytes
wait 4000
A sends "c"
    to 1a: "c"
wait 900
A sends "d"
    to 1a: "d"
wait 200
    close A
    close 1a
    log request end=client_slow reason=timeout limit=client-write-timeout
    release A at 1
