# Replica 1 sends the head of an error and then nonsense, in one piece; replica 2 succeeds. The
# first head is forgotten: the answer is a success, and the connection stays open.
replicas 2

A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 71 "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"
1a sends "HTTP/1.1 500 X\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
    close 1a
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/chat/completions HTTP/1.1; Content-Length: 71 "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"
2a streams
2a says "data: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "31\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\n\r\n"
2a says "data: [DONE]\n\n"
    to A: "e\r\ndata: [DONE]\n\n\r\n"
2a is done
    to A: "0\r\n\r\n"
    release A at 2
counters
    requests 1, retries 1, 2xx 1, upstream broken 1
