# SGLang streams the refusal of a prompt that is too long as a 200. It is the client's own: no other
# replica is asked, and the client gets a 400.
replicas 2
A connects
A posts /generate {"text":"x","stream":true}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /generate HTTP/1.1; Content-Length: 26 "{\"text\":\"x\",\"stream\":true}"
1a streams
1a says "data: {\"error\":{\"message\":\"The input is too long.\",\"type\":\"invalid_request_error\",\"code\":400,\"retryable\":false}}\n\n"
    to A: HTTP/1.1 400 Bad Request; Content-Length: 101 "{\"error\":{\"message\":\"The input is too long.\",\"type\":\"invalid_request_error\",\"param\":null,\"code\":400}}"
    close 1a
    log request
    release A at 1
counters
    requests 1, 4xx 1, refused by an engine 1
