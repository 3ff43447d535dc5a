# Several chunks arrive in one read: the output of the first ones waits, unchanged, until all are
# sent.
engines vllm
replicas 1
set kv-ask 100
wait 1000
the events are live of replica 1
tokens may be asked for
A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[{"role":"user","content":"Tell me a story of two foxes and a hen, and let it be a long one, for the night is long and the fire is warm; say what each of them wants, and how it ends. Then tell it again as the hen would tell it, and once more as the younger fox would, who has never seen a hen before, and let the end be another one each time."}]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 448 "{\"stream_options\":{\"incl... 448 bytes"
1a sends "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5a\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"token_ids\":[1]}],\"prompt_token_ids\":[4,5,6]}\n\n\r\n4b\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"b\"},\"token_ids\":[2]}]}\n\ndata: {\"choi\r\n33\r\nces\":[{\"delta\":{\"content\":\"c\"},\"token_ids\":[3]}]}\n\n\r\n40\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"d\"},\"token_ids\":[44]}]}\n\n\r\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "58\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"token_ids\":null}],\"prompt_token_ids\":null}\n\n\r\n"
    to A: "40\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"b\"},\"token_ids\":null}]}\n\n\r\n"
    to A: "40\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"c\"},\"token_ids\":null}]}\n\n\r\n"
    to A: "40\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"d\"},\"token_ids\":null}]}\n\n\r\n"
