# SGLang has the question under another name, and refuses it in streams.
engines sglang
replicas 1
set kv-ask 100
the events are live of replica 1
tokens may be asked for
A connects
A posts /v1/chat/completions {"model":"m","messages":[{"role":"user","content":"Tell me a story of two foxes and a hen, and let it be a long one, for the night is long and the fire is warm; say what each of them wants, and how it ends. Then tell it again as the hen would tell it, and once more as the younger fox would, who has never seen a hen before, and let the end be another one each time."}]}
    connect 1a
    book A at 1
