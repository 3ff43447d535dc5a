# A client that reads nothing for client-write-timeout is closed, and the replica is released.
replicas 1
set client-write-timeout 5s

A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a streams
A takes nothing
1a says "data: {\"text\":\"1\"}\n\n"
    queue for A: 190 bytes
wait 4950
wait 50
    close A
    close 1a
    log request end=client_slow reason=timeout limit=client-write-timeout
    release A at 1
counters
    requests 1, 2xx 1, client time-outs 1, cut: slow 1
