# A body with its own stream options is forwarded unchanged, and so is its answer.
engines sglang
replicas 1
wait 1000
A connects
A posts /v1/chat/completions {"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 81 "{\"model\":\"m\",\"stream\":true,\"stream_options\":{\"include_usage\":true},\"messages\":[]}"
1a streams
1a says "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "2f\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n\r\n"
1a says "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n"
    to A: "56\r\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n\r\n"
1a is done
    to A: "0\r\n\r\n"
    release A at 1
A posts /v1/chat/completions {"model":"m","stream":true,"stream_options":null,"messages":[]}
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 63 "{\"model\":\"m\",\"stream\":true,\"stream_options\":null,\"messages\":[]}"
    book A at 1
1a answers 200 "{}"
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
