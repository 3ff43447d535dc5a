# Everything that is no answer gives a 502, in each variant: nothing of it reaches the client, and
# part of a head or of a chunk counts as none.
replicas 1
set retries-max 0

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a sends "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"
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
1b sends "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    close 1b
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 169 "{\"error\":{\"message\":\"The replica failed before it answered. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 1
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1c
    book A at 1
1c accepts
    to 1c: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1c sends "HTTP/1.1 xyz OK\r\nContent-Length: 0\r\n\r\n"
    close 1c
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 169 "{\"error\":{\"message\":\"The replica failed before it answered. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 1
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1d
    book A at 1
1d accepts
    to 1d: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1d sends "HTTP/3.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    close 1d
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 169 "{\"error\":{\"message\":\"The replica failed before it answered. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 1
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1e
    book A at 1
1e accepts
    to 1e: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1e sends "HTTP/1.1 200 OK\nContent-Length: 0\n\n"
    close 1e
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 169 "{\"error\":{\"message\":\"The replica failed before it answered. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 1
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1f
    book A at 1
1f accepts
    to 1f: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1f sends "HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n"
    close 1f
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 169 "{\"error\":{\"message\":\"The replica failed before it answered. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 1
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1g
    book A at 1
1g accepts
    to 1g: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1g sends "HTTP/1.1 200 OK\r\nX: a\x00b\r\nContent-Length: 0\r\n\r\n"
    close 1g
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 169 "{\"error\":{\"message\":\"The replica failed before it answered. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 1
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1h
    book A at 1
1h accepts
    to 1h: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1h sends "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"
    close 1h
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 169 "{\"error\":{\"message\":\"The replica failed before it answered. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 1
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1i
    book A at 1
1i accepts
    to 1i: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1i sends "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"
    close 1i
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 169 "{\"error\":{\"message\":\"The replica failed before it answered. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 1
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1j
    book A at 1
1j accepts
    to 1j: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1j sends "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
    close 1j
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 169 "{\"error\":{\"message\":\"The replica failed before it answered. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 1
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1k
    book A at 1
1k accepts
    to 1k: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1k sends "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n"
    close 1k
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 169 "{\"error\":{\"message\":\"The replica failed before it answered. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 1
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1l
    book A at 1
1l accepts
    to 1l: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1l sends "HTTP/1.1 200 OK\r\nContent-Le"
1l ends
    close 1l
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 169 "{\"error\":{\"message\":\"The replica failed before it answered. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 1
counters
    requests 12, 5xx 12, refused bad gateway 12, upstream broken 12
