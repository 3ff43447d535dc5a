# The engine's events are live, so the router asks for the prompt's token ids and removes them
# again. Tokens that a parser holds back get an event of their own then, which is removed too.
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
1a streams
1a says "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}],\"prompt_token_ids\":[1,2,3]}\n\ndata: {\"choices\":[{\"delta\":{},\"logprobs\":null,\"finish_reason\":null,\"token_ids\":[7]}]}\n\ndata: {\"cho"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "6e\r\ndata: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}],\"prompt_token_ids\":null}\n\n\r\n"
1a says "ices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\",\"token_ids\":[8]}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n"
    to A: "65\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\",\"token_ids\":null}]}\n\ndata: [DONE]\n\n\r\n"
1a is done
    to A: "0\r\n\r\n"
    release A at 1
