# OpenAI's clients leave at [DONE] without waiting for the last chunk: the answer is complete. If a
# client leaves earlier, it is not.
replicas 1
set access-log all
set ask-usage off

A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a streams
1a says "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "30\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\r\n"
1a says "data: [DONE]\n\n"
    to A: "e\r\ndata: [DONE]\n\n\r\n"
A ends
    close A
    close 1a
    log request
    release A at 1
B connects
B posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1b
    book B at 1
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1b streams
1b says "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"
    to B: HTTP/1.1 200 OK; Transfer-Encoding: chunked "30\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\r\n"
1b says "data: [DONE]\n"
    to B: "d\r\ndata: [DONE]\n\r\n"
B ends
    close B
    close 1b
    log request end=client_gone
    release B at 1
C connects
C posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1c
    book C at 1
1c accepts
    to 1c: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1c streams
1c says "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"
    to C: HTTP/1.1 200 OK; Transfer-Encoding: chunked "30\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\r\n"
C takes nothing
1c says "data: [DONE]\n\n"
    queue for C: 19 bytes
C breaks
    close C
    close 1c
    log request end=client_gone
    release C at 1
D connects
D posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1d
    book D at 1
1d accepts
    to 1d: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1d streams
1d says "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"
    to D: HTTP/1.1 200 OK; Transfer-Encoding: chunked "30\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\r\n"
1d says "data: [DONE]\n\n"
    to D: "e\r\ndata: [DONE]\n\n\r\n"
D is deaf
1d is done
    log request
    reset D
    release D at 1
counters
    requests 4, 2xx 4, clients gone 2, cut: gone 2
outcomes
    1: ok 2 client gone 2
