# SGLang rejects a prompt that is too long in a stream with status 200. Another replica gives the
# same answer, so it is the client's fault: a 400 with the first replica's message.
replicas 2
A connects
A posts /generate {"text":"x","stream":true}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /generate HTTP/1.1; Content-Length: 26 "{\"text\":\"x\",\"stream\":true}"
1a streams
1a says "data: {\"error\":{\"message\":\"The input is too long.\",\"type\":\"invalid_request_error\",\"code\":400,\"retryable\":false}}\n\n"
    close 1a
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /generate HTTP/1.1; Content-Length: 26 "{\"text\":\"x\",\"stream\":true}"
2a streams
2a says "data: {\"error\":{\"message\":\"The input is longer than the context.\",\"type\":\"invalid_request_error\",\"code\":400,\"retryable\":false}}\n\n"
    close 2a
    to A: HTTP/1.1 400 Bad Request; Content-Length: 101 "{\"error\":{\"message\":\"The input is too long.\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":400}}"
    log request
    release A at 2
counters
    requests 1, retries 1, 4xx 1, refused by an engine 1
outcomes
    1: rejected 1
    2: rejected 1
