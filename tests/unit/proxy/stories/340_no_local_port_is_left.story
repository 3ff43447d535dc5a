# All local ports towards a replica are in use, which is no failure of it. Requests use an idle
# connection, go to another replica, or wait until a connection is free.
replicas 2

ports 1
A connects
B connects
C connects
D connects
A posts /v1/completions {"model":"m","prompt":"a"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
B posts /v1/completions {"model":"m","prompt":"b"}
    connect 2a
    book B at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"b\"}"
C posts /v1/completions {"model":"m","prompt":"c"}
    cannot connect to 2
    log local_shortage
    cannot connect to 1
D posts /v1/chat/completions {"model":"m","stream":true,"messages":[{"role":"user","content":"d"}]}
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"c\"}"
    cannot connect to 1
    release A at 1
    book C at 1
2a answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    to 2a: POST /v1/chat/completions HTTP/1.1; Content-Length: 70 "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"d\"}]}"
    release B at 2
    book D at 2
2a streams
2a says "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n"
    to D: HTTP/1.1 200 OK; Transfer-Encoding: chunked "2f\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n\r\n"
2a says "data: [DONE]\n\n"
    to D: "e\r\ndata: [DONE]\n\n\r\n"
2a is done
    to D: "0\r\n\r\n"
    release D at 2
1a answers 200 {}
    to C: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release C at 1
counters
    requests 4, 2xx 4, upstream reused 2
outcomes
    1: ok 2 not sent 2
    2: ok 2 not sent 1
wait 11000
    reset 2a
    reset 1a
    log local_shortage_over
