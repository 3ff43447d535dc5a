# All interim heads of an answer count towards the limit of its head (64 KiB). Beyond it the answer
# is malformed.
replicas 1
set retries-max 0
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a sends "HTTP/1.1 102 Processing\r\n\r\n"*1200
1a sends "HTTP/1.1 102 Processing\r\n\r\n"*1200
1a sends "HTTP/1.1 102 Processing\r\n\r\n"*100
    close 1a
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 169 "{\"error\":{\"message\":\"The replica failed before it answered. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 1
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1b sends "HTTP/1.1 102 Processing\r\n\r\n"*2000
1b answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
