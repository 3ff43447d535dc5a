# The router does not ask for token ids if the client asks for them or wants the prompt repeated,
# for a prompt with a name space or without a checkpoint, or for an HTTP/1.0 client, which would
# recognise the end of the answer by that of its connection.
engines vllm
replicas 1
set kv-ask 100
the events are live of replica 1
tokens may be asked for
A connects
A posts /v1/chat/completions {"model":"m","return_token_ids":true,"messages":[{"role":"user","content":"Tell me a story of two foxes and a hen, and let it be a long one, for the night is long and the fire is warm; say what each of them wants, and how it ends. Then tell it again as the hen would tell it, and once more as the younger fox would, who has never seen a hen before, and let the end be another one each time."}]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 394 "{\"model\":\"m\",\"return_tok... 394 bytes"
1a answers 200 {"choices":[{"token_ids":[7]}],"prompt_token_ids":[1,2]}
    to A: HTTP/1.1 200 X; Content-Length: 56 "{\"choices\":[{\"token_ids\":[7]}],\"prompt_token_ids\":[1,2]}"
    release A at 1
A posts /v1/completions {"model":"m","echo":true,"prompt":"Tell me a story of two foxes and a hen, and let it be a long one, for the night is long and the fire is warm; say what each of them wants, and how it ends. Then tell it again as the hen would tell it, and once more as the younger fox would, who has never seen a hen before, and let the end be another one each time."}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 352 "{\"model\":\"m\",\"echo\":true... 352 bytes"
    book A at 1
1a answers 200 {"choices":[]}
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 1
A posts /v1/chat/completions {"model":"m","cache_salt":"s","messages":[{"role":"user","content":"Tell me a story of two foxes and a hen, and let it be a long one, for the night is long and the fire is warm; say what each of them wants, and how it ends. Then tell it again as the hen would tell it, and once more as the younger fox would, who has never seen a hen before, and let the end be another one each time."}]}
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 387 "{\"model\":\"m\",\"cache_salt... 387 bytes"
    book A at 1
1a answers 200 {"choices":[]}
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 1
A posts /v1/chat/completions {"model":"m","messages":[{"role":"user","content":"short"}]}
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 60 "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"short\"}]}"
    book A at 1
1a answers 200 {"choices":[]}
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 1
A posts /v1/chat/completions {"model":"m","messages":[{"role":"user","content":"Tell me a story of two foxes and a hen, and let it be a long one, for the night is long and the fire is warm; say what each of them wants, and how it ends. Then tell it again as the hen would tell it, and once more as the younger fox would, who has never seen a hen before, and let the end be another one each time."}]}
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 394 "{\"return_token_ids\":true... 394 bytes"
    book A at 1
1a answers 200 {"choices":[{"token_ids":[7]}],"prompt_token_ids":[1,2]}
    to A: HTTP/1.1 200 X; Transfer-Encoding: chunked "38\r\n{\"choices\":[{\"token_ids\":null}],\"prompt_token_ids\":null}\r\n0\r\n\r\n"
    release A at 1
A posts /v1/chat/completions {"model":"m","messages":[{"role":"user","content":"Tell me a story of two foxes and a hen, and let it be a long one, for the night is long and the fire is warm; say what each of them wants, and how it ends. Then tell it again as the hen would tell it, and once more as the younger fox would, who has never seen a hen before, and let the end be another one each time."}]}
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 394 "{\"return_token_ids\":true... 394 bytes"
    book A at 1
1a answers 200 {"choices":[{"token_ids":null}],"prompt_token_ids":null}
    to A: HTTP/1.1 200 X; Transfer-Encoding: chunked "38\r\n{\"choices\":[{\"token_ids\":null}],\"prompt_token_ids\":null}\r\n0\r\n\r\n"
    release A at 1
tokens may be asked for
A sends "POST /v1/completions HTTP/1.0\r\nContent-Length: 340\r\n\r\n{\"model\":\"m\",\"prompt\":\"Tell me a story of two foxes and a hen, and let it be a long one, for the night is long and the fire is warm; say what each of them wants, and how it ends. Then tell it again as the hen would tell it, and once more as the younger fox would, who has never seen a hen before, and let the end be another one each time.\"}"
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 340 "{\"model\":\"m\",\"prompt\":\"T... 340 bytes"
    book A at 1
