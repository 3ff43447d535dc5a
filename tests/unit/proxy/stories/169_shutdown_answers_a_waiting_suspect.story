# A suspect waits for an idle replica when the router stops: it is answered like all waiting
# requests.
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
the queue
    {"requests_in_flight":2,"requests_max":65536,"replica_requests_max":4096,"queue_length":0,"queue_max":1000,"queue_timeout_ms":30000,"queue_served":0,"queue_full":0,"queue_timeouts":0,"waiting":[{"model":"m","for":"a replica to itself","requests":1,"longest_ms":500}]}
the node stops
    to A: HTTP/1.1 503 Service Unavailable; Content-Length: 192; retry-after: 1; Connection: close "{\"error\":{\"message\":\"The router is stopping, and no replica could be used in time. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
    close A
    to C: "b5\r\ndata: {\"error\":{\"message\":\"The router is stopping: the answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    close C
    close 3a
    log request end=stopped reason=stopping
    to B: "b5\r\ndata: {\"error\":{\"message\":\"The router is stopping: the answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    close B
    close 2a
    log request end=stopped reason=stopping
    release B at 2
    release C at 3
counters
    requests 3, retries 1, 2xx 2, 5xx 1, refused stopping 1, cut: stopped 2, upstream broken 1
