# HTTP/1.0 has no chunks: the end of the connection ends the answer. A cut answer must end with a
# reset, or the client would take it for complete.
replicas 1

A connects
A sends "POST /v1/completions HTTP/1.0\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"x\"}"
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a streams
1a says "data: {\"text\":\"1\"}\n\n"
    to A: HTTP/1.1 200 OK; Connection: close "data: {\"text\":\"1\"}\n\n"
1a is done
    log upstream_failed then=error_event
    to A: "data: {\"error\":{\"message\":\"The replica failed: its answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n"
    log request end=engine_failed reason=no_terminal
    reset A
    release A at 1
B connects
B sends "POST /v1/completions HTTP/1.0\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"x\"}"
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
    book B at 1
1a streams
1a says "data: {\"text\":\"1\"}\n\n"
    to B: HTTP/1.1 200 OK; Connection: close "data: {\"text\":\"1\"}\n\n"
1a ends
    close 1a
    log upstream_failed then=error_event
    to B: "data: {\"error\":{\"message\":\"The replica failed: its answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n"
    log request end=engine_failed reason=broken
    reset B
    release B at 1
