# No request waits for a removed replica: the waiting request gets 503 at once. The request in
# flight there is answered.
replicas 1
set replica-requests-max 1

A connects
B connects
C connects
A posts /v1/completions {"model":"m","prompt":"a"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
B posts /v1/completions {"model":"m","prompt":"b"}
replica 1 goes
    log replica_removed
wait 50
    to B: HTTP/1.1 503 Service Unavailable; Content-Length: 173; retry-after: 1 "{\"error\":{\"message\":\"No replica that serves this request is up. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
counters
    requests 2, 2xx 1, 5xx 1, refused no replica 1
