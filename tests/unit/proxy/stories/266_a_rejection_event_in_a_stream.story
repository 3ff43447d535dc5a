# The rejection arrives as an event of a stream with status 200, before any token. It is checked
# elsewhere too, and the client sees nothing of it.
replicas 2
A connects
A posts /generate {"text":"x","stream":true}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /generate HTTP/1.1; Content-Length: 26 "{\"text\":\"x\",\"stream\":true}"
1a streams
1a says "data: {\"error\":{\"message\":\"No such adapter.\",\"code\":400}}\n\n"
    close 1a
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /generate HTTP/1.1; Content-Length: 26 "{\"text\":\"x\",\"stream\":true}"
2a streams
2a says "data: {\"text\":\"a\",\"meta_info\":{\"completion_tokens\":1,\"finish_reason\":null}}\n\n"
    log replica_rejects
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "4d\r\ndata: {\"text\":\"a\",\"meta_info\":{\"completion_tokens\":1,\"finish_reason\":null}}\n\n\r\n"
2a says "data: [DONE]\n\n"
    to A: "e\r\ndata: [DONE]\n\n\r\n"
outcomes
    1: rejected 1
    2:
