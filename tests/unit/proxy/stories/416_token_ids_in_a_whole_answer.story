# A whole answer has another length without token ids, so its own length is not forwarded.
engines vllm
replicas 1
set kv-ask 100
the events are live of replica 1
tokens may be asked for
A connects
A posts /v1/completions {"model":"m","prompt":"Tell me a story of two foxes and a hen, and let it be a long one, for the night is long and the fire is warm; say what each of them wants, and how it ends. Then tell it again as the hen would tell it, and once more as the younger fox would, who has never seen a hen before, and let the end be another one each time."}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 364 "{\"return_token_ids\":true... 364 bytes"
1a answers 200 {"choices":[{"text":"x","token_ids":[7,8],"prompt_token_ids":[1,2,3]}],"usage":{"prompt_tokens":3,"completion_tokens":2}}
    to A: HTTP/1.1 200 X; Transfer-Encoding: chunked "75\r\n{\"choices\":[{\"text\":\"x\",\"token_ids\":null,\"prompt_token_ids\":null}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\r\n0\r\n\r\n"
    release A at 1
