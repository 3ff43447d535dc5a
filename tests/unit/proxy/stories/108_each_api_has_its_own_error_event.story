# The same cut for Anthropic's messages, OpenAI's responses (with the next number) and SGLang's own
# path. Also a stream that is silent too long: a timeout.
replicas 1
set upstream-idle-timeout 5s

A connects
A posts /v1/messages {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/messages HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a streams
1a says "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"hel\"}}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "58\r\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"hel\"}}\n\n\r\n"
1a is done
    log upstream_failed then=error_event
    to A: "e9\r\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"The replica failed: its answer is cut. Provider returned error 503 (server error): try again later.\"},\"request_id\":\"6502eeb65069f8d139474e71d99d99b2\"}\n\n\r\n"
    log request end=engine_failed reason=no_terminal
    close A
    release A at 1
B connects
B posts /v1/responses {"model":"m","stream":true,"input":"x"}
    to 1a: POST /v1/responses HTTP/1.1; Content-Length: 39 "{\"model\":\"m\",\"stream\":true,\"input\":\"x\"}"
    book B at 1
1a streams
1a says "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"hel\",\"sequence_number\":7}\n\n"
    to B: HTTP/1.1 200 OK; Transfer-Encoding: chunked "71\r\nevent: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"hel\",\"sequence_number\":7}\n\n\r\n"
1a breaks
    close 1a
    log upstream_failed then=error_event
    to B: "cc\r\nevent: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"The replica failed: its answer is cut. Provider returned error 503 (server error): try again later.\",\"param\":null,\"sequence_number\":8}\n\n\r\n"
    log request end=engine_failed reason=broken
    close B
    release B at 1
C connects
C posts /generate {"text":"x","stream":true}
    connect 1b
    book C at 1
1b accepts
    to 1b: POST /generate HTTP/1.1; Content-Length: 26 "{\"text\":\"x\",\"stream\":true}"
1b streams
1b says "data: {\"text\":\"hel\"}\n\n"
    to C: HTTP/1.1 200 OK; Transfer-Encoding: chunked "16\r\ndata: {\"text\":\"hel\"}\n\n\r\n"
wait 5000
    close 1b
    log upstream_failed then=error_event
    to C: "de\r\ndata: {\"error\":{\"message\":\"The replica was silent for too long (upstream-idle-timeout): its answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"code\":503,\"retryable\":true}}\n\n\r\n"
    log request end=engine_failed reason=idle limit=upstream-idle-timeout
    close C
    release C at 1
