# A few compressed bytes may decode to many. Up to 256 KiB of decoded bytes wait for a slow client,
# as in any answer; the rest waits compressed. The router stops reading from the replica until the
# client has caught up.
replicas 1
set upstream-idle-timeout 3s

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
A takes nothing
1a sends "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: zstd\r\nContent-Length: 25\r\n\r\n(\xb5/\xfd\x00P\x02\x00\x10x\x02\x00\x10y\x02\x00\x10z\x02\x00\x10w\x01\x00\x00"
    queue for A: 157 bytes
    pause 1a
wait 10000
A takes all
    later to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked
    to A: "4000\r\nxxxxxxxxxxxxxxxxxx... 4096 bytes"
    resume 1a
    pause 1a
    to A: "xxxxxxxxxxxxxxxxxxxxxxxx... 16384 bytes"
    resume 1a
    pause 1a
    to A: "xxxxxxxxxxxxxxxxxxxxxxxx... 16384 bytes"
    resume 1a
    pause 1a
    to A: "xxxxxxxxxxxxxxxxxxxxxxxx... 16384 bytes"
    resume 1a
    pause 1a
    to A: "xxxxxxxxxxxxxxxxxxxxxxxx... 16384 bytes"
    resume 1a
    pause 1a
    to A: "xxxxxxxxxxxxxxxxxxxxxxxx... 16384 bytes"
    resume 1a
    pause 1a
    to A: "xxxxxxxxxxxxxxxxxxxxxxxx... 16384 bytes"
    resume 1a
    pause 1a
    to A: "xxxxxxxxxxxxxxxxxxxxxxxx... 16384 bytes"
    resume 1a
    pause 1a
    to A: "xxxxxxxxxxxxxxxxxxxxxxxx... 16384 bytes"
    resume 1a
    pause 1a
    to A: "yyyyyyyyyyyyyyyyyyyyyyyy... 16384 bytes"
    resume 1a
    pause 1a
    to A: "yyyyyyyyyyyyyyyyyyyyyyyy... 16384 bytes"
    resume 1a
    pause 1a
    to A: "yyyyyyyyyyyyyyyyyyyyyyyy... 16384 bytes"
    resume 1a
    pause 1a
    to A: "yyyyyyyyyyyyyyyyyyyyyyyy... 16384 bytes"
    resume 1a
    pause 1a
    to A: "yyyyyyyyyyyyyyyyyyyyyyyy... 16384 bytes"
    resume 1a
    pause 1a
    to A: "yyyyyyyyyyyyyyyyyyyyyyyy... 16384 bytes"
    resume 1a
    pause 1a
    to A: "yyyyyyyyyyyyyyyyyyyyyyyy... 16384 bytes"
    resume 1a
    pause 1a
    to A: "yyyyyyyyyyyyyyyyyyyyyyyy... 16384 bytes"
    resume 1a
    to A: "zzzzzzzzzzzzzzzzzzzzzzzz... 16384 bytes"
    to A: "zzzzzzzzzzzzzzzzzzzzzzzz... 16384 bytes"
    to A: "zzzzzzzzzzzzzzzzzzzzzzzz... 16384 bytes"
    to A: "zzzzzzzzzzzzzzzzzzzzzzzz... 16384 bytes"
    to A: "zzzzzzzzzzzzzzzzzzzzzzzz... 16384 bytes"
    to A: "zzzzzzzzzzzzzzzzzzzzzzzz... 16384 bytes"
    to A: "zzzzzzzzzzzzzzzzzzzzzzzz... 16384 bytes"
    to A: "zzzzzzzzzzzzzzzzzzzzzzzz... 16384 bytes"
    to A: "wwwwwwwwwwwwwwwwwwwwwwww... 16384 bytes"
    to A: "wwwwwwwwwwwwwwwwwwwwwwww... 16384 bytes"
    to A: "wwwwwwwwwwwwwwwwwwwwwwww... 16384 bytes"
    to A: "wwwwwwwwwwwwwwwwwwwwwwww... 16384 bytes"
    to A: "wwwwwwwwwwwwwwwwwwwwwwww... 16384 bytes"
    to A: "wwwwwwwwwwwwwwwwwwwwwwww... 16384 bytes"
    to A: "wwwwwwwwwwwwwwwwwwwwwwww... 16384 bytes"
    to A: "wwwwwwwwwwwwwwwwwwwwwwww... 12549 bytes"
    release A at 1
counters
    requests 1, 2xx 1, backpressure 17
