# A suspect's client leaves while it waits. No state remains, and the replica is no longer reserved.
replicas 3
engines sglang
set policy round_robin

A connects
A posts /v1/completions {"model":"m","stream":true,"prompt":[5000]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 43 "{\"model\":\"m\",\"stream\":true,\"prompt\":[5000]}"
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
    connect 3a
    book C at 3
3a accepts
    to 3a: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"stream\":true,\"prompt\":\"c\"}"
3a streams
3a says "data: {\"choices\":[{\"text\":\"c\"}]}\n\n"
    to C: HTTP/1.1 200 OK; Transfer-Encoding: chunked "22\r\ndata: {\"choices\":[{\"text\":\"c\"}]}\n\n\r\n"
wait 5200
1a ends
    close 1a
    log poison_suspect replicas=10.0.0.1:8000
    log upstream_failed then=waits
    release A at 1
wait 500
A ends
    close A
    log request end=client_gone
wait 50
D connects
D posts /v1/completions {"model":"m","stream":true,"prompt":"d"}
    connect 1b
    book D at 1
1b refuses
    close 1b
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2b
    release D at 1
    book D at 2
2b accepts
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 80 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"prompt\":\"d\"}"
counters
    requests 4, retries 2, clients gone 1, connect failures 1, upstream broken 1
