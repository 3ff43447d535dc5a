# A client's connection breaks while an answer is queued for it. The pending write shows it, and the
# engine is released.
replicas 1

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
A is deaf
    close A
    close 1a
    log request end=client_gone
    release A at 1
B connects
B posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1b
    book B at 1
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1b streams
B is deaf
1b says "data: {\"text\":\"1\"}\n\n"
1b says "data: {\"text\":\"2\"}\n\n"
wait 2000
    reset B
    close 1b
    log request end=client_gone
    release B at 1
counters
    requests 2, 2xx 2, clients gone 2, cut: gone 2
