# An engine's answer is not HTTP. The client has received nothing, so the router asks another
# replica. The second answer breaks off among its chunks, where nothing can be repaired.
replicas 2

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a sends "SSH-2.0-OpenSSH\r\n\r\n"
    close 1a
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2a streams
2a says "data: {\"text\":\"1\"}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "14\r\ndata: {\"text\":\"1\"}\n\n\r\n"
2a sends "3\r\nabc\r\nzz\r\n"
    close 2a
    log upstream_failed then=error_event
    to A: "b7\r\nabc-\n\ndata: {\"error\":{\"message\":\"The replica failed: its answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    log request end=engine_failed reason=malformed
    close A
    release A at 2
counters
    requests 1, retries 1, 2xx 1, cut: engine 1, upstream broken 2
