# A whole stream arrives in one read. When the router sees its token, the connection is already back
# in the pool, and is kept as long as any other.
replicas 1
set upstream-keepalive 4s

A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a sends "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 61\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n"
    to A: HTTP/1.1 200 OK; Content-Length: 61 "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n"
    release A at 1
wait 3950
wait 50
    close 1a
counters
    requests 1, 2xx 1
