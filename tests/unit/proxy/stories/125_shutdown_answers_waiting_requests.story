# When the router stops, it answers the waiting requests.
replicas 1
set replica-requests-max 1

A connects
B connects
A posts /v1/completions {"model":"m","prompt":"a"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
B posts /v1/completions {"model":"m","prompt":"b"}
drain
the port closes
the node stops
    to B: HTTP/1.1 503 Service Unavailable; Content-Length: 187; retry-after: 1; Connection: close "{\"error\":{\"message\":\"The router is stopping, and no replica had room in time. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
    close B
    close A
    close 1a
    log request end=stopped reason=stopping
    release A at 1
