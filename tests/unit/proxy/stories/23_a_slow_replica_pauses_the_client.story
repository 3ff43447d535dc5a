# A body that the router need not read is streamed. If the replica is slower than the client, the
# router buffers 256 KiB, then stops reading from the client; the client's time limit does not run.
# Reading resumes when half of the buffer is sent.
replicas 1
set other-paths pass
set client-body-timeout 3s

A connects
A sends "PUT /upload HTTP/1.1\r\nHost: g\r\nContent-Length: 600001\r\n\r\n9"
    connect 1a
    book A at 1
1a accepts
    to 1a: PUT /upload HTTP/1.1; Content-Length: 600001 "9"
1a takes nothing
A sends "0123456789"*30000
    queue for 1a: 4095 bytes
    pause A
A sends "0123456789"*20000
wait 10000
1a takes 180000
    later to 1a: "012345678901234567890123... 4095 bytes"
    to 1a: "567890123456789012345678... 175905 bytes"
    queue for 1a: 102623 bytes
    resume A
    pause A
1a takes all
    later to 1a: "012345678901234567890123... 102623 bytes"
    to 1a: "345678901234567890123456... 196608 bytes"
    resume A
    to 1a: "123456789012345678901234... 20769 bytes"
A sends "0123456789"*10000
    to 1a: "012345678901234567890123... 44767 bytes"
    to 1a: "789012345678901234567890... 55233 bytes"
1a answers 200 {"ok":true}
    to A: HTTP/1.1 200 X; Content-Length: 11 "{\"ok\":true}"
    release A at 1
counters
    requests 1, 2xx 1
