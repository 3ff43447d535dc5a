# The router asks engines for usage that the client did not request, and removes it from the answer,
# including another replica's answer that continues after a keep-alive.
engines sglang
replicas 2
set stream-hold 2s

wait 1000
A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 81 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a streams
1a says "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
wait 2000
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "41\r\ndata: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n\r\n"
1a breaks
    close 1a
    log upstream_failed then=moved to=10.0.0.2:8000
    release A at 1
    book A at 2
wait 250
    connect 2a
2a accepts
    to 2a: POST /v1/chat/completions HTTP/1.1; Content-Length: 81 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"messages\":[]}"
2a streams
2a says "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
2a says "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"
    to A: "30\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\r\n"
2a says "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\n"
2a says "data: [DONE]\n\n"
    to A: "e\r\ndata: [DONE]\n\n\r\n"
2a is done
    to A: "0\r\n\r\n"
    release A at 2
counters
    requests 1, retries 1, 2xx 1, upstream broken 1
