# A connection breaks, but its engine goes on answering: it did not die. If the next connection
# breaks too, that is the first death, and a third engine is asked.
replicas 3

A connects
A posts /v1/completions {"model":"m","stream":true,"prompt":"a"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"stream\":true,\"prompt\":\"a\"}"
B connects
B posts /v1/completions {"model":"m","stream":true,"prompt":"b"}
    connect 3a
    book B at 3
3a accepts
    to 3a: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"stream\":true,\"prompt\":\"b\"}"
C connects
C posts /v1/completions {"model":"m","stream":true,"prompt":"c"}
    connect 2a
    book C at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"stream\":true,\"prompt\":\"c\"}"
D connects
D posts /v1/completions {"model":"m","stream":true,"prompt":"d"}
    connect 1b
    book D at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"stream\":true,\"prompt\":\"d\"}"
1a breaks
    close 1a
    log upstream_failed then=moved to=10.0.0.2:8000
    release A at 1
    book A at 2
wait 1000
    connect 2b
1b streams
1b says "data: {\"choices\":[{\"text\":\"d\"}]}\n\n"
    to D: HTTP/1.1 200 OK; Transfer-Encoding: chunked "22\r\ndata: {\"choices\":[{\"text\":\"d\"}]}\n\n\r\n"
2b accepts
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"stream\":true,\"prompt\":\"a\"}"
2b breaks
    close 2b
    log upstream_failed then=moved to=10.0.0.3:8000
    release A at 2
    book A at 3
wait 250
    connect 3b
3b accepts
    to 3b: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"stream\":true,\"prompt\":\"a\"}"
counters
    requests 4, retries 2, upstream broken 2
