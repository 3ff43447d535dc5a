# A process is killed while bytes flow: its connections end at once. Requests without a token go to
# the other engine at once, busy or not. None is lost, and none becomes a suspect.
replicas 2
set policy round_robin

A connects
A posts /v1/completions {"model":"m","stream":true,"prompt":"a"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"stream\":true,\"prompt\":\"a\"}"
B connects
B posts /v1/completions {"model":"m","stream":true,"prompt":"b"}
    connect 2a
    book B at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"stream\":true,\"prompt\":\"b\"}"
2a streams
2a says "data: {\"choices\":[{\"text\":\"b\"}]}\n\n"
    to B: HTTP/1.1 200 OK; Transfer-Encoding: chunked "22\r\ndata: {\"choices\":[{\"text\":\"b\"}]}\n\n\r\n"
C connects
C posts /v1/completions {"model":"m","stream":true,"prompt":"c"}
    connect 1b
    book C at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"stream\":true,\"prompt\":\"c\"}"
D connects
D posts /v1/completions {"model":"m","stream":true,"prompt":"d"}
    connect 2b
    book D at 2
2b accepts
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"stream\":true,\"prompt\":\"d\"}"
wait 100
1a breaks
    close 1a
    log upstream_failed then=moved to=10.0.0.2:8000
    release A at 1
    book A at 2
1b ends
    close 1b
    log upstream_failed then=moved to=10.0.0.2:8000
    release C at 1
    book C at 2
wait 250
    connect 2c
    connect 2d
2c accepts
    to 2c: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"stream\":true,\"prompt\":\"a\"}"
2d accepts
    to 2d: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"stream\":true,\"prompt\":\"c\"}"
2c streams
2c says "data: {\"choices\":[{\"text\":\"a\"}]}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "22\r\ndata: {\"choices\":[{\"text\":\"a\"}]}\n\n\r\n"
2d streams
2d says "data: {\"choices\":[{\"text\":\"c\"}]}\n\n"
    to C: HTTP/1.1 200 OK; Transfer-Encoding: chunked "22\r\ndata: {\"choices\":[{\"text\":\"c\"}]}\n\n\r\n"
counters
    requests 4, retries 2, upstream broken 2
