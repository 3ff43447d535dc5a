# A key limited to some models is refused for others: by name, as an adapter, or if the router
# cannot tell which model an engine will use.
replicas 1
client alice gv-alice models=m,llama-*

A connects
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-alice\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"x\"}"
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 200 {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}
    to A: HTTP/1.1 200 X; Content-Length: 64 "{\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}"
    release A at 1
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-alice\r\nContent-Length: 32\r\n\r\n{\"model\":\"llama-7b\",\"prompt\":\"\"}"
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 32 "{\"model\":\"llama-7b\",\"prompt\":\"\"}"
    book A at 1
1a answers 200 {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}
    to A: HTTP/1.1 200 X; Content-Length: 64 "{\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}"
    release A at 1
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-alice\r\nContent-Length: 26\r\n\r\n{\"model\":\"n\",\"prompt\":\"x\"}"
    to A: HTTP/1.1 404 Not Found; Content-Length: 135; x-grapevine-limit: models "{\"error\":{\"message\":\"The model `n` does not exist, or this API key may not use it.\",\"type\":\"NotFoundError\",\"param\":\"model\",\"code\":404}}"
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-alice\r\nContent-Length: 14\r\n\r\n{\"prompt\":\"x\"}"
    to A: HTTP/1.1 404 Not Found; Content-Length: 134; x-grapevine-limit: models "{\"error\":{\"message\":\"The model `` does not exist, or this API key may not use it.\",\"type\":\"NotFoundError\",\"param\":\"model\",\"code\":404}}"
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-alice\r\nContent-Length: 25\r\n\r\n{\"model\":\"m\",\"model\":\"n\"}"
    to A: HTTP/1.1 404 Not Found; Content-Length: 135; x-grapevine-limit: models "{\"error\":{\"message\":\"The model `n` does not exist, or this API key may not use it.\",\"type\":\"NotFoundError\",\"param\":\"model\",\"code\":404}}"
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-alice\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"model\":null}"
    to A: HTTP/1.1 404 Not Found; Content-Length: 134; x-grapevine-limit: models "{\"error\":{\"message\":\"The model `` does not exist, or this API key may not use it.\",\"type\":\"NotFoundError\",\"param\":\"model\",\"code\":404}}"
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-alice\r\nContent-Length: 32\r\n\r\n{\"model\":\"m\",\"lora_path\":[\"n\"]} "
    to A: HTTP/1.1 404 Not Found; Content-Length: 135; x-grapevine-limit: models "{\"error\":{\"message\":\"The model `m` does not exist, or this API key may not use it.\",\"type\":\"NotFoundError\",\"param\":\"model\",\"code\":404}}"
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-alice\r\nContent-Length: 29\r\n\r\n{\"model\":\"m\",\"lora_path\":\"n\"}"
    to A: HTTP/1.1 404 Not Found; Content-Length: 135; x-grapevine-limit: models "{\"error\":{\"message\":\"The model `n` does not exist, or this API key may not use it.\",\"type\":\"NotFoundError\",\"param\":\"model\",\"code\":404}}"
A sends "POST /v1/messages HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-alice\r\nContent-Length: 10\r\n\r\nno json at"
    to A: HTTP/1.1 404 Not Found; Content-Length: 172; x-grapevine-limit: models "{\"type\":\"error\",\"error\":{\"type\":\"not_found_error\",\"message\":\"The model `` does not exist, or this API key may not use it.\"},\"request_id\":\"be3d8f4fb1895b4ba47ca58cd25a9c30\"}"
B connects
B sends "POST /generate HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-alice\r\nContent-Length: 12\r\n\r\n{\"text\":\"x\"}"
    to B: HTTP/1.1 403 Forbidden; Content-Length: 179; x-grapevine-limit: models; Connection: close "{\"error\":{\"message\":\"This API key is for certain models only, and which one a request to this path is for cannot be told.\",\"type\":\"PermissionDeniedError\",\"param\":null,\"code\":403}}"
    finish B
C connects
C sends "POST /v1/audio/transcriptions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-alice\r\nContent-Length: 2\r\n\r\n{}"
    to C: HTTP/1.1 403 Forbidden; Content-Length: 179; x-grapevine-limit: models; Connection: close "{\"error\":{\"message\":\"This API key is for certain models only, and which one a request to this path is for cannot be told.\",\"type\":\"PermissionDeniedError\",\"param\":null,\"code\":403}}"
    finish C
D connects
D sends "POST /invocations HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-alice\r\nX-Amzn-SageMaker-Adapter-Identifier: n\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"x\"}"
    to D: HTTP/1.1 403 Forbidden; Content-Length: 179; x-grapevine-limit: models; Connection: close "{\"error\":{\"message\":\"This API key is for certain models only, and which one a request to this path is for cannot be told.\",\"type\":\"PermissionDeniedError\",\"param\":null,\"code\":403}}"
    finish D
counters
    requests 12, 2xx 2, 4xx 10, invalid: key's model 10, upstream reused 1, not understood 1
