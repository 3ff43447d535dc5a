# retries-max limits how often a request may go elsewhere after a failure: here not at all. The
# client gets the router's own error, and the request was at one replica.
replicas 2
set retries-max 0

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a ends
    close 1a
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 169 "{\"error\":{\"message\":\"The replica failed before it answered. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 1
counters
    requests 1, 5xx 1, refused bad gateway 1, upstream broken 1
