# A request without streaming. The answer is forwarded with its length, and the tokens are counted
# at the end. The second request reuses the idle connection.
replicas 1

A connects
A posts /v1/chat/completions {"model":"m","messages":[{"role":"user","content":"hi"}]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 57 "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"
1a answers 200 {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}
    to A: HTTP/1.1 200 X; Content-Length: 64 "{\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}"
    release A at 1
A posts /v1/chat/completions {"model":"m","messages":[{"role":"user","content":"again"}]}
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 60 "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"again\"}]}"
    book A at 1
1a sends "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"id\":"
1a sends "\"x\"}\n"
    to A: HTTP/1.1 200 OK; Content-Length: 11 "{\"id\":\"x\"}\n"
    release A at 1
counters
    requests 2, 2xx 2, upstream reused 1
