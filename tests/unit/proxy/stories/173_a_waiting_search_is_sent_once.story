# A replica asked for a stored response breaks, and the next one is full: the question waits. It is
# then sent once. A second answer would be taken for the next request's on that connection.
replicas 2
set replica-requests-max 1

A connects
B connects
A posts /v1/completions {"model":"m","prompt":"a"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
B posts /v1/responses {"model":"m","previous_response_id":"r1","input":"and then?"}
    connect 2a
    book B at 2
2a accepts
    to 2a: GET /v1/responses/r1 HTTP/1.1
2a breaks
    close 2a
    log upstream_failed then=asks_next
    release B at 2
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    to 1a: GET /v1/responses/r1 HTTP/1.1
    release A at 1
    book B at 1
1a answers 404 {}
    connect 2b
    release B at 1
    book B at 2
counters
    requests 2, retries 1, 2xx 1, upstream broken 1, upstream reused 1
