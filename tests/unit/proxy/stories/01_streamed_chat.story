# A streamed chat. The router chooses a replica, sends the request and streams the answer back byte
# for byte. The first token releases the prefill; the end releases the rest. The connection is kept
# for the next request.
replicas 2

A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 71 "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"
1a streams
1a says "data: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "31\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\n\r\n"
1a says "data: [DONE]\n\n"
    to A: "e\r\ndata: [DONE]\n\n\r\n"
1a is done
    to A: "0\r\n\r\n"
    release A at 1
A posts /v1/chat/completions {"model":"m","messages":[{"role":"user","content":"again"}]}
    connect 2a
    book A at 2
2a accepts
    to 2a: POST /v1/chat/completions HTTP/1.1; Content-Length: 60 "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"again\"}]}"
2a answers 200 {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}
    to A: HTTP/1.1 200 X; Content-Length: 64 "{\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}"
    release A at 2
wait 5000
    close 1a
    close 2a
