# If asked for usage, vLLM sends its fingerprint with it; if not, with the finish reason. The client
# gets what it would get without the router: the event with the finish reason waits for the next
# one, usage or the end.
engines vllm
replicas 1
wait 1000
A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 81 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a streams
1a says "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":null}]}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "44\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":null}]}\n\n\r\n"
1a says "data: {\"choices\":[{\"delta\":{\"content\":\"y\"},\"finish_reason\":\"stop\"}]}\n\n"
1a says "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2},\"system_fingerprint\":\"vllm-1\"}\n\n"
    to A: "64\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"y\"},\"finish_reason\":\"stop\"}],\"system_fingerprint\":\"vllm-1\"}\n\n\r\n"
1a says "data: [DONE]\n\n"
    to A: "e\r\ndata: [DONE]\n\n\r\n"
1a is done
    to A: "0\r\n\r\n"
    release A at 1
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 81 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"messages\":[]}"
    book A at 1
1a streams
1a says "data: {\"choices\":[{\"delta\":{\"content\":\"y\"},\"finish_reason\":\"stop\"}]}\n\n"
1a says "data: [DONE]\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "54\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"y\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n\r\n"
1a is done
    to A: "0\r\n\r\n"
    release A at 1
