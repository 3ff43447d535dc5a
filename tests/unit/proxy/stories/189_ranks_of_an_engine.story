# An engine has two data-parallel ranks behind one address. Once its metrics show this, a request is
# pinned to the rank that has its prompt cached. Requests that engines cannot pin (responses) go
# without a rank. The engine restarts with one rank before its metrics show it: it refuses the pin,
# and the request is repeated without one. The client sees none of this.
replicas 1
probes
set health-interval 1h
set ask-usage off

start
    connect 1a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 200 {"object":"list","data":[{"id":"m"}]}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "vllm:num_requests_running{engine=\"0\"} 0\nvllm:num_requests_running{engine=\"1\"} 0\n"
wait 1000
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "vllm:num_requests_running{engine=\"0\"} 0\nvllm:num_requests_running{engine=\"1\"} 3\n"
A connects
A posts /v1/chat/completions {"model":"m","messages":[{"role":"user","content":"hello"}]}
    connect 1b
    book A at 2
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 60; X-Data-Parallel-Rank: 0 "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}"
1b answers 200 {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}
    to A: HTTP/1.1 200 X; Content-Length: 64 "{\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}"
    release A at 2
A posts /v1/responses {"model":"m","input":"hello"}
    to 1b: POST /v1/responses HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"input\":\"hello\"}"
    book A at 1
1b answers 200 {"id":"resp_1","output":[]}
    to A: HTTP/1.1 200 X; Content-Length: 27 "{\"id\":\"resp_1\",\"output\":[]}"
    release A at 1
A sends "POST /v1/completions HTTP/1.1\r\nHost: a\r\nx-data-parallel-rank: 7\r\nContent-Length: 28\r\n\r\n{\"model\":\"m\",\"prompt\":\"one\"}"
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 28; X-Data-Parallel-Rank: 0 "{\"model\":\"m\",\"prompt\":\"one\"}"
    book A at 2
1b answers 400 {"error":{"message":"data_parallel_rank 1 is out of range [0, 1).","type":"BadRequestError","param":null,"code":400}}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 28 "{\"model\":\"m\",\"prompt\":\"one\"}"
    release A at 2
    book A at 1
1b answers 200 {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}
    to A: HTTP/1.1 200 X; Content-Length: 64 "{\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}"
    release A at 1
A posts /v1/completions {"model":"m","prompt":"two"}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 28; X-Data-Parallel-Rank: 1 "{\"model\":\"m\",\"prompt\":\"two\"}"
    book A at 3
1b answers 400 {"error":{"message":"Input should be a valid integer","type":"BadRequestError","param":null,"code":400}}
    to A: HTTP/1.1 400 X; Content-Length: 104 "{\"error\":{\"message\":\"Input should be a valid integer\",\"type\":\"BadRequestError\",\"param\":null,\"code\":400}}"
    log request
    release A at 3
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[{"role":"user","content":"hello"}]}
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 74; X-Data-Parallel-Rank: 0 "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}"
    book A at 2
1b streams
1b says "data: {\"error\":{\"message\":\"data_parallel_rank 1 is out of range [0, 1).\",\"type\":\"BadRequestError\",\"param\":null,\"code\":400}}\n\ndata: [DONE]\n\n"
    close 1b
    connect 1c
    release A at 2
    book A at 1
1c accepts
    to 1c: POST /v1/chat/completions HTTP/1.1; Content-Length: 74 "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}"
1c streams
1c says "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: [DONE]\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "3e\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: [DONE]\n\n\r\n"
1c is done
    to A: "0\r\n\r\n"
    release A at 1
counters
    requests 5, retries 2, 2xx 4, 4xx 1, upstream reused 5
outcomes
    1: ok 3
    2: ok 3
    3: rejected 1
