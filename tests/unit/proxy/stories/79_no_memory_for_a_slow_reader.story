# Bytes that a slow client does not read count as buffered memory. If there is no memory, its
# connection is reset.
replicas 1
set buffered-bytes-max 64KiB

A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a streams
A takes nothing
1a says "0123456789abcdef"*6000
wait 2000
    reset A
    close 1a
    log request end=no_memory reason=memory
    release A at 1
counters
    requests 1, 2xx 1, cut: memory 1
