# A body that needs no reading streams through. Is the replica slower than the client, the client is
# not read beyond 256 KiB, and its time limit does not run; it goes on when half of that is sent.
replicas 1
set other-paths pass
set client-body-timeout 3s

A connects
A sends "PUT /upload HTTP/1.1\r\nHost: g\r\nContent-Length: 600000\r\n\r\n"
    connect 1a
    book A at 1
1a accepts
    to 1a: PUT /upload HTTP/1.1; Content-Length: 600000
1a takes nothing
A sends "0123456789"*30000
    queue for 1a: 16384 bytes
    pause A
A sends "0123456789"*20000
wait 10000
1a takes 180000
    later to 1a: "012345678901234567890123... 16384 bytes"
    to 1a: "456789012345678901234567... 163616 bytes"
    queue for 1a: 114912 bytes
    resume A
    pause A
1a takes all
    later to 1a: "012345678901234567890123... 114912 bytes"
    to 1a: "234567890123456789012345... 196608 bytes"
    resume A
    to 1a: "012345678901234567890123... 8480 bytes"
A sends "0123456789"*10000
    to 1a: "012345678901234567890123... 57056 bytes"
    to 1a: "678901234567890123456789... 42944 bytes"
1a answers 200 {"ok":true}
    to A: HTTP/1.1 200 X; Content-Length: 11 "{\"ok\":true}"
    release A at 1
counters
    requests 1, 2xx 1
