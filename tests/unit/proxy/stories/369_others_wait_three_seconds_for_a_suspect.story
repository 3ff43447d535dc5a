# The same without a token: after 3 s one of them (E) joins the suspect. No other place is free, so
# F waits.
replicas 3
engines sglang
set policy round_robin
set replica-requests-max 2

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
C connects
C posts /v1/completions {"model":"m","stream":true,"prompt":"c"}
    connect 3a
    book C at 3
3a accepts
    to 3a: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"stream\":true,\"prompt\":\"c\"}"
3a streams
3a says "data: {\"choices\":[{\"text\":\"c\"}]}\n\n"
    to C: HTTP/1.1 200 OK; Transfer-Encoding: chunked "22\r\ndata: {\"choices\":[{\"text\":\"c\"}]}\n\n\r\n"
2a answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 2
wait 5200
    close 2a
1a ends
    close 1a
    log poison_suspect replicas=10.0.0.1:8000
    log upstream_failed then=moved to=10.0.0.2:8000
    release A at 1
    book A at 2
wait 250
    connect 2b
2b accepts
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 43 "{\"model\":\"m\",\"stream\":true,\"prompt\":[5000]}"
replica 1 goes
    log replica_removed
D connects
D posts /v1/completions {"model":"m","prompt":"d"}
    connect 3b
    book D at 3
3b accepts
    to 3b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"d\"}"
E connects
E posts /v1/completions {"model":"m","prompt":"e"}
F connects
F posts /v1/completions {"model":"m","prompt":"f"}
wait 2900
wait 100
    connect 2c
    book E at 2
the queue
    {"requests_in_flight":4,"requests_max":65536,"replica_requests_max":2,"queue_length":1,"queue_max":1000,"queue_timeout_ms":30000,"queue_served":0,"queue_full":0,"queue_timeouts":0,"waiting":[{"model":"m","for":"room","requests":1,"longest_ms":0}]}
the node stops
    to F: HTTP/1.1 503 Service Unavailable; Content-Length: 187; retry-after: 1; Connection: close "{\"error\":{\"message\":\"The router is stopping, and no replica had room in time. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
    close F
    close E
    close 2c
    log request end=stopped reason=stopping
    close D
    close 3b
    log request end=stopped reason=stopping
    to C: "b5\r\ndata: {\"error\":{\"message\":\"The router is stopping: the answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    close C
    close 3a
    log request end=stopped reason=stopping
    close B
    close A
    close 2b
    log request end=stopped reason=stopping
    release A at 2
    release C at 3
    release D at 3
    release E at 2
counters
    requests 6, retries 1, 2xx 2, 5xx 1, refused stopping 1, cut: stopped 1, upstream broken 1
