# A request that waited, was sent and returns to the queue because its replica failed has only the
# rest of queue-timeout: 2 s in all.
replicas 2
set replica-requests-max 1
set queue-timeout 2s

A connects
B connects
C connects
A posts /v1/completions {"model":"m","prompt":"a"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
C posts /v1/completions {"model":"m","prompt":"c"}
    connect 2a
    book C at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"c\"}"
B posts /v1/completions {"model":"m","prompt":"b"}
wait 1500
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"b\"}"
    release A at 1
    book B at 1
wait 5000
1a breaks
    close 1a
    log upstream_failed then=waits
    release B at 1
wait 400
wait 100
    to B: HTTP/1.1 504 Gateway Timeout; Content-Length: 191; x-grapevine-limit: queue-timeout "{\"error\":{\"message\":\"No replica had room for the request in time (queue-timeout). Provider returned error 504 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":504}}"
    log request
2a answers 200 {}
    to C: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release C at 2
counters
    requests 3, retries 1, 2xx 2, 5xx 1, refused queue time 1, upstream broken 1, upstream reused 1
