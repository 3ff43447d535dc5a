# Another replica cannot continue the numbered events of a response, so sending its preamble ends
# the retries.
replicas 2
set stream-hold 2s
A connects
A posts /v1/responses {"model":"m","stream":true,"input":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/responses HTTP/1.1; Content-Length: 39 "{\"model\":\"m\",\"stream\":true,\"input\":\"x\"}"
1a streams
1a says "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"r1\",\"error\":null}}\n\n"
wait 2000
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "73\r\nevent: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"r1\",\"error\":null}}\n\n\r\n"
1a breaks
    close 1a
    log upstream_failed then=error_event
    to A: "cc\r\nevent: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"The replica failed: its answer is cut. Provider returned error 503 (server error): try again later.\",\"param\":null,\"sequence_number\":1}\n\n\r\n"
    log request end=engine_failed reason=broken
    close A
    release A at 1
counters
    requests 1, 2xx 1, cut: engine 1, upstream broken 1
