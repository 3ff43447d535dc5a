# A Content-Encoding may come with an empty body: for a 204, for a length of 0, or for a body
# without bytes.
replicas 1

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a sends "HTTP/1.1 204 No Content\r\nContent-Encoding: gzip\r\n\r\n"
    to A: HTTP/1.1 204 No Content
    release A at 1
A posts /v1/completions {"model":"m","prompt":"x"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
    book A at 1
1a sends "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "0\r\n\r\n"
    release A at 1
A posts /v1/completions {"model":"m","prompt":"x"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
    book A at 1
1a sends "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: zstd\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "0\r\n\r\n"
    release A at 1
counters
    requests 3, 2xx 3, upstream reused 2
outcomes
    1: ok 3
