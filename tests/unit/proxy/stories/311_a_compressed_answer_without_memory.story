# A decoder's memory counts towards buffered-bytes-max: a window of 8 MiB here. If there is no
# memory, the client gets an error if it has received nothing, and the replica is not blamed.
replicas 1
set buffered-bytes-max 8MiB

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a sends "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: zstd\r\nTransfer-Encoding: chunked\r\n\r\n"
1a says "(\xb5/\xfd\x00h"
    close 1a
    to A: HTTP/1.1 503 Service Unavailable; Content-Length: 160; retry-after: 1; x-grapevine-limit: buffered-bytes-max "{\"error\":{\"message\":\"Too many bodies are held now. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
    release A at 1
1a says "\x0a\x00\x00x"
# One with a small window is decoded.
A posts /v1/completions {"model":"m","prompt":"y"}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
1b sends "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: zstd\r\nTransfer-Encoding: chunked\r\n\r\n"
1b says "(\xb5/\xfd\x00P\x11\x00\x00{}"
1b is done
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "2\r\n{}\r\n0\r\n\r\n"
    release A at 1
# One that grows beyond it when the client has its beginning is cut.
A posts /v1/completions {"model":"m","prompt":"z"}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"z\"}"
    book A at 1
1b sends "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: zstd\r\nTransfer-Encoding: chunked\r\n\r\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked
1b says "(\xb5/\xfd\x00P\x11\x00\x00{}"
    to A: "2\r\n{}\r\n"
1b says "(\xb5/\xfd\x00h\x11\x00\x00{}"
    close A
    close 1b
    log request end=no_memory reason=memory limit=buffered-bytes-max
    release A at 1
counters
    requests 3, 2xx 2, 5xx 1, refused memory 1, cut: memory 1, upstream reused 1
outcomes
    1: ok 1 client gone 2
