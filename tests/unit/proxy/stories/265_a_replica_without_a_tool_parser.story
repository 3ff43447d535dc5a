# The first replica rejects requests with tools, and serves all others. It is avoided only for
# requests with tools: the third and the fifth, while the other replica is busy.
replicas 2
A connects
B connects
A posts /v1/chat/completions {"model":"m","messages":[],"tools":[{"type":"function"}]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 57 "{\"model\":\"m\",\"messages\":[],\"tools\":[{\"type\":\"function\"}]}"
1a answers 400 {"error":"no tool parser"}
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/chat/completions HTTP/1.1; Content-Length: 57 "{\"model\":\"m\",\"messages\":[],\"tools\":[{\"type\":\"function\"}]}"
2a answers 200 {"choices":[]}
    log replica_rejects
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 2
A posts /v1/chat/completions {"model":"m","messages":[],"tools":[{"type":"function"}]}
    to 2a: POST /v1/chat/completions HTTP/1.1; Content-Length: 57 "{\"model\":\"m\",\"messages\":[],\"tools\":[{\"type\":\"function\"}]}"
    book A at 2
B posts /v1/chat/completions {"model":"m","messages":[]}
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
    book B at 1
1a answers 200 {"choices":[]}
    to B: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release B at 1
B posts /v1/chat/completions {"model":"m","messages":[],"tools":[{"type":"function"}]}
    connect 2b
    book B at 2
2b accepts
    to 2b: POST /v1/chat/completions HTTP/1.1; Content-Length: 57 "{\"model\":\"m\",\"messages\":[],\"tools\":[{\"type\":\"function\"}]}"
2a answers 200 {"choices":[]}
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 2
2b answers 200 {"choices":[]}
    to B: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release B at 2
outcomes
    1: ok 1 rejected 1
    2: ok 3
