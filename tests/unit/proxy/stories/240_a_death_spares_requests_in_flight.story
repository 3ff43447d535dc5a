# The budget is empty. Requests in flight at a dying engine are retried anyway. A request that began
# there only after the death needs the budget, though it breaks within the same second.
replicas 3
set policy round_robin

A connects
A posts /v1/completions {"model":"m","prompt":"a"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
no retry is left
wait 100
1a breaks
    close 1a
    log upstream_failed then=moved to=10.0.0.3:8000
    release A at 1
    book A at 3
wait 250
    connect 3a
B connects
B posts /v1/completions {"model":"m","prompt":"b"}
    connect 1b
    book B at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"b\"}"
1b breaks
    close 1b
    log upstream_failed then=error
    to B: HTTP/1.1 502 Bad Gateway; Content-Length: 169; x-grapevine-limit: retry-budget "{\"error\":{\"message\":\"The replica failed before it answered. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release B at 1
counters
    requests 2, retries 1, 5xx 1, refused retry budget 1, upstream broken 2
