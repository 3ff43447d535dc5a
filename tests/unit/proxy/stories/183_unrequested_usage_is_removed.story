# The router asks the engine for usage, and removes the extra event again, wherever the stream is
# cut into pieces. Everything else is unchanged.
engines sglang
replicas 1
wait 1000
A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 81 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a streams
1a says "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"\\\"usage\\\"\"}}]}\n\ndat"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "66\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"\x5c\"usage\x5c\"\"}}]}\n\n\r\n"
1a says "a: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\n\ndata: [DO"
1a says "NE]\n\n"
    to A: "e\r\ndata: [DONE]\n\n\r\n"
1a is done
    to A: "0\r\n\r\n"
    release A at 1
