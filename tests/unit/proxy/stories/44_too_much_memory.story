# All buffered bodies share a limit. Beyond it a request is refused with 503. Requests in flight are
# not affected.
replicas 1
set buffered-bytes-max 64KiB

A connects
A posts /v1/completions "{\"model\":\"m\",\"prompt\":\"xxxxxxxxxxxxxxxx"*1000
    connect 1a
    book A at 1
B connects
B posts /v1/completions "{\"model\":\"m\",\"prompt\":\"xxxxxxxxxxxxxxxx"*1000
    to B: HTTP/1.1 503 Service Unavailable; Content-Length: 168; retry-after: 1; x-grapevine-limit: buffered-bytes-max; Connection: close "{\"error\":{\"message\":\"Too many request bodies are held now. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
    finish B
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 39000 "{\"model\":\"m\",\"prompt\":\"x... 39000 bytes"
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
counters
    requests 2, 2xx 1, 5xx 1, refused memory 1, not understood 1
