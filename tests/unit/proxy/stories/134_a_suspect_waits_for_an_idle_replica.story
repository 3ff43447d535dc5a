# An engine died, and the others are busy. One of them is reserved for the suspect (A) until it is
# idle; later requests (D) go to the other. A's first token clears it.
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
D connects
D posts /v1/completions {"model":"m","stream":true,"prompt":"d"}
    connect 3b
    book D at 3
3b accepts
    to 3b: POST /v1/completions HTTP/1.1; Content-Length: 80 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"prompt\":\"d\"}"
wait 500
2a says "data: [DONE]\n\n"
    to B: "e\r\ndata: [DONE]\n\n\r\n"
2a is done
    to B: "0\r\n\r\n"
    connect 2b
    book A at 2
    release B at 2
wait 250
2b accepts
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 43 "{\"model\":\"m\",\"stream\":true,\"prompt\":[5000]}"
2b streams
2b says "data: {\"choices\":[{\"text\":\"a\"}]}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "22\r\ndata: {\"choices\":[{\"text\":\"a\"}]}\n\n\r\n"
E connects
E posts /v1/completions {"model":"m","stream":true,"prompt":"e"}
    connect 3c
    book E at 3
counters
    requests 5, retries 1, 2xx 1, upstream broken 1
