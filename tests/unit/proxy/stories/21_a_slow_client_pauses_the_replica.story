# A client reads slowly. The router buffers up to 256 KiB, then stops reading from the replica until
# the client catches up. Neither side's time limit runs because of the other.
replicas 1
set upstream-idle-timeout 3s

A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a streams
A takes nothing
1a says "0123456789abcdef"*12000
    queue for A: 4096 bytes
1a says "0123456789abcdef"*12000
    pause 1a
wait 10000
A takes 1000
    later to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "1fff9\r\n0123456789abcdef0... 836 bytes"
1a says "behind"
A takes all
    later to A: "def0123456789abcdef01234... 3096 bytes"
    to A: "56789abcdef0123456789abc... 65536 bytes"
    resume 1a
    to A: "56789abcdef0123456789abc... 65536 bytes"
    to A: "def0123456789abcdef01234... 65536 bytes"
    to A: "56789abcdef0123456789abc... 65536 bytes"
    to A: "cdef0123456789abcdef0123... 57023 bytes"
    to A: "ee0d\r\n9abcdef0123456789a... 60949 bytes"
1a is done
    to A: "0\r\n\r\n"
    release A at 1
counters
    requests 1, 2xx 1, backpressure 1
