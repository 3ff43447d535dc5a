# The terminal event has arrived, only the last chunk is missing: the answer is complete for the
# client. For the replica the connection counts as broken.
replicas 1

A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 71 "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"
1a streams
1a says "data: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\ndata: [DONE]\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "3f\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\ndata: [DONE]\n\n\r\n"
1a breaks
    close 1a
    log upstream_failed then=whole
    to A: "0\r\n\r\n"
    log request
    release A at 1
counters
    requests 1, 2xx 1, upstream broken 1
