# The client has only whole events: the error follows them.
engines vllm
replicas 1
set kv-ask 100
the events are live of replica 1
tokens may be asked for
A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[{"role":"user","content":"Tell me a story of two foxes and a hen, and let it be a long one, for the night is long and the fire is warm; say what each of them wants, and how it ends. Then tell it again as the hen would tell it, and once more as the younger fox would, who has never seen a hen before, and let the end be another one each time."}]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 408 "{\"return_token_ids\":true... 408 bytes"
1a streams
1a says "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"token_ids\":[7]}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"y\"},\"token_ids\":[8"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "40\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"token_ids\":null}]}\n\n\r\n"
1a breaks
    close 1a
    log upstream_failed then=error_event
    to A: "b1\r\ndata: {\"error\":{\"message\":\"The replica failed: its answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    log request end=engine_failed reason=broken
    close A
    release A at 1
