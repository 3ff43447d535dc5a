# No port gets free in time: the error names the shortage and the setting that ended the wait.
# Without a queue it is 429. No replica is blamed, and no retry counted.
replicas 1
set queue-timeout 2s
set queue-max 1

ports 0
A connects
B connects
A posts /v1/completions {"model":"m","prompt":"a"}
    cannot connect to 1
    log local_shortage
B posts /v1/messages {"model":"m","max_tokens":1,"messages":[{"role":"user","content":"b"}]}
    to B: HTTP/1.1 429 Too Many Requests; Content-Length: 270; retry-after: 1; x-grapevine-limit: queue-max "{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"This router has no local port left for connections to replicas and too many requests wait. Provider returned error 429 (too many requests): try again in 1 s.\"},\"request_id\":\"6a604477f0713a2517889798c4e59b5d\"}"
    log request
wait 2100
    cannot connect to 1
    cannot connect to 1
    cannot connect to 1
    cannot connect to 1
    to A: HTTP/1.1 504 Gateway Timeout; Content-Length: 210; x-grapevine-limit: queue-timeout "{\"error\":{\"message\":\"This router has no local port left for connections to replicas (queue-timeout). Provider returned error 504 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":504}}"
    log request
ports 1
A posts /v1/completions {"model":"m","prompt":"a"}
wait 1000
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
counters
    requests 3, 2xx 1, 4xx 1, 5xx 1, refused queue full 1, refused queue time 1
outcomes
    1: ok 1 not sent 5
