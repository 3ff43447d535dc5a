# The time limit for a client that does not read covers everything queued for it, including a 100
# Continue that is unread while the body arrives.
replicas 1
set client-write-timeout 5s

A connects
A takes nothing
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nExpect: 100-continue\r\nContent-Length: 26\r\n\r\n"
    queue for A: 25 bytes
A sends "{\"model\":\"m\",\"prompt\":\"x\"}"
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 200 {}
    release A at 1
wait 4950
    close 1a
wait 50
    close A
counters
    requests 1, 2xx 1, client time-outs 1
