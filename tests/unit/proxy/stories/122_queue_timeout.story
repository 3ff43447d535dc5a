# queue-timeout: 504. The next waiting request is not delayed.
replicas 1
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
B posts /v1/completions {"model":"m","prompt":"b"}
wait 1000
C posts /v1/completions {"model":"m","prompt":"c"}
wait 950
wait 50
    to B: HTTP/1.1 504 Gateway Timeout; Content-Length: 191; x-grapevine-limit: queue-timeout "{\"error\":{\"message\":\"No replica had room for the request in time (queue-timeout). Provider returned error 504 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":504}}"
    log request
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"c\"}"
    release A at 1
    book C at 1
1a answers 200 {}
    to C: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release C at 1
counters
    requests 3, 2xx 2, 5xx 1, refused queue time 1, upstream reused 1
