# Whatever the engine's 400 means, the router repeats the request without the question. If the
# engine accepts it then, the question was the reason: the engine is not asked again for an hour.
engines vllm
replicas 1
set kv-ask 100
the events are live of replica 1
tokens may be asked for
A connects
A posts /v1/chat/completions {"model":"m","messages":[{"role":"user","content":"Tell me a story of two foxes and a hen, and let it be a long one, for the night is long and the fire is warm; say what each of them wants, and how it ends. Then tell it again as the hen would tell it, and once more as the younger fox would, who has never seen a hen before, and let the end be another one each time."}]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 394 "{\"return_token_ids\":true... 394 bytes"
1a answers 400 {"error":{"message":"Extra inputs are not permitted","code":400}}
    connect 1b
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 394 "{                       ... 394 bytes"
1b answers 200 {"choices":[]}
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 1
tokens may be asked for
A posts /v1/chat/completions {"model":"m","messages":[{"role":"user","content":"Tell me a story of two foxes and a hen, and let it be a long one, for the night is long and the fire is warm; say what each of them wants, and how it ends. Then tell it again as the hen would tell it, and once more as the younger fox would, who has never seen a hen before, and let the end be another one each time."}]}
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 394 "{                       ... 394 bytes"
    book A at 1
1b answers 200 {"choices":[]}
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 1
