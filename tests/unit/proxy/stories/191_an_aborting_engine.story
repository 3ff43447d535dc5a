# An engine that ends requests with the finish reason "abort" (vLLM, when another rank has died)
# failed. Another replica answers requests without a token, streamed or not, whatever is left of the
# retry budget; other answers pass unchanged. Without another replica the client gets the engine's
# answer.
replicas 2
A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a streams
1a says "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n"
1a says "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"abort\"}]}\n\ndata: [DONE]\n\n"
    log upstream_failed then=moved to=10.0.0.2:8000
    close 1a
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
2a streams
2a says "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "30\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\r\n"
2a says "data: {\"choices\":[{\"delta\":{\"content\":\"\"},\"finish_reason\":\"abort\"}]}\n\ndata: [DONE]\n\n"
    to A: "54\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"\"},\"finish_reason\":\"abort\"}]}\n\ndata: [DONE]\n\n\r\n"
2a is done
    to A: "0\r\n\r\n"
    log request end=whole reason=aborted
    release A at 2
no retry is left
B connects
B posts /v1/completions {"model":"m","prompt":"x"}
    connect 1b
    book B at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1b answers 200 {"choices":[{"text":"half of","finish_reason":"abort"}],"usage":{"prompt_tokens":7,"completion_tokens":2}}
    log upstream_failed then=moved to=10.0.0.2:8000
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
    release B at 1
    book B at 2
2a answers 200 {"choices":[{"text":"whole","finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":2}}
    to B: HTTP/1.1 200 X; Content-Length: 103 "{\"choices\":[{\"text\":\"whole\",\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}"
    release B at 2
outcomes
    1: error 2
    2: ok 1 error 1
replica 2 goes
    log replica_removed
    close 2a
B posts /v1/completions {"model":"m","prompt":"x"}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
    book B at 1
1b answers 200 {"choices":[{"text":"half of","finish_reason":"abort"}],"usage":{"prompt_tokens":7,"completion_tokens":2}}
    log upstream_failed then=answer
    to B: HTTP/1.1 200 X; Content-Length: 106 "{\"choices\":[{\"text\":\"half of\",\"finish_reason\":\"abort\"}],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}"
    log request end=whole reason=aborted
    release B at 1
B posts /generate {"text":"x","stream":true}
    to 1b: POST /generate HTTP/1.1; Content-Length: 26 "{\"text\":\"x\",\"stream\":true}"
    book B at 1
1b streams
1b says "data: {\"text\":\"\",\"output_ids\":[],\"meta_info\":{\"finish_reason\":{\"type\":\"abort\",\"message\":\"Aborted\"}}}\n\n"
    log upstream_failed then=answer
    to B: HTTP/1.1 200 OK; Transfer-Encoding: chunked "66\r\ndata: {\"text\":\"\",\"output_ids\":[],\"meta_info\":{\"finish_reason\":{\"type\":\"abort\",\"message\":\"Aborted\"}}}\n\n\r\n"
    release B at 1
1b says "data: [DONE]\n\n"
    to B: "e\r\ndata: [DONE]\n\n\r\n"
1b is done
    to B: "0\r\n\r\n"
    log request end=whole reason=aborted
outcomes
    1: error 4
    2: ok 1 error 1
counters
    requests 4, retries 2, 2xx 4, upstream reused 3
