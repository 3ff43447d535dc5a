# A body streamed to a slow engine is read no faster than the engine accepts it. The time for which
# the client is paused counts towards no limit.
replicas 1
set client-body-timeout 20s
set client-body-rate-min 1KiB
set client-body-total-timeout 1m
set other-paths pass

A connects
A sends "POST /x HTTP/1.1\r\nHost: g\r\nContent-Length: 1000001\r\n\r\nx"
    connect 1a
    book A at 1
1a takes nothing
1a accepts
    queue for 1a: 226 bytes
A sends "x"*400000
    pause A
wait 40000
1a takes all
    later to 1a: POST /x HTTP/1.1; Content-Length: 1000001 "x"
    to 1a: "xxxxxxxxxxxxxxxxxxxxxxxx... 282623 bytes"
    resume A
    to 1a: "xxxxxxxxxxxxxxxxxxxxxxxx... 65536 bytes"
    to 1a: "xxxxxxxxxxxxxxxxxxxxxxxx... 51841 bytes"
A sends "x"*100000
    to 1a: "xxxxxxxxxxxxxxxxxxxxxxxx... 13695 bytes"
    to 1a: "xxxxxxxxxxxxxxxxxxxxxxxx... 65536 bytes"
    to 1a: "xxxxxxxxxxxxxxxxxxxxxxxx... 20769 bytes"
1a takes nothing
A sends "x"*300000
    queue for 1a: 44767 bytes
    pause A
wait 90000
1a takes all
    later to 1a: "xxxxxxxxxxxxxxxxxxxxxxxx... 44767 bytes"
    to 1a: "xxxxxxxxxxxxxxxxxxxxxxxx... 255233 bytes"
A sends "x"*200000
    to 1a: "xxxxxxxxxxxxxxxxxxxxxxxx... 6911 bytes"
    to 1a: "xxxxxxxxxxxxxxxxxxxxxxxx... 65536 bytes"
    to 1a: "xxxxxxxxxxxxxxxxxxxxxxxx... 65536 bytes"
    to 1a: "xxxxxxxxxxxxxxxxxxxxxxxx... 62017 bytes"
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
counters
    requests 1, 2xx 1
