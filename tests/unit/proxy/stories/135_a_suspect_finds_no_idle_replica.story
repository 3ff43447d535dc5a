# The replica reserved for a suspect does not become idle. The router answers 502 instead of running
# the suspect together with other requests. Repeated, the suspect waits again, but for half a minute
# no replica is reserved for it.
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
wait 3950
wait 100
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 215 "{\"error\":{\"message\":\"An engine died after this request, and no engine was without other requests in time. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
D connects
D posts /v1/completions {"model":"m","stream":true,"prompt":[5000]}
    connect 1b
    book D at 1
E connects
E posts /v1/completions {"model":"m","stream":true,"prompt":"e"}
    connect 2b
    book E at 2
counters
    requests 5, retries 1, 5xx 1, refused suspect 1, upstream broken 1
