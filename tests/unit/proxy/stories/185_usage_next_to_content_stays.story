# An engine that sends usage together with content sends it to every client: nothing is removed.
engines sglang
replicas 1
wait 1000
A connects
A posts /v1/completions {"model":"m","stream":true,"prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 80 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"prompt\":\"x\"}"
1a streams
1a says "data: {\"choices\":[{\"text\":\"x\"}],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "54\r\ndata: {\"choices\":[{\"text\":\"x\"}],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\n\r\n"
1a says "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n"
    to A: "56\r\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n\r\n"
1a is done
    to A: "0\r\n\r\n"
    release A at 1
