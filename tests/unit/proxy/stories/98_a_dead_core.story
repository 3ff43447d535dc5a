# One vLLM reports a dead core, another reports that it drains. The third replica answers, and the
# first is blamed: the next requests do not go there.
replicas 3
A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a streams
1a says "data: {\"error\": {\"message\": \"EngineCore encountered an issue. See stack trace (above) for the root cause.\", \"type\": \"InternalServerError\", \"param\": null, \"code\": 500}}\n\ndata: [DONE]\n\n"
    log upstream_failed then=moved to=10.0.0.2:8000
    close 1a
    release A at 1
    book A at 2
wait 250
    connect 2a
2a accepts
    to 2a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
2a answers 500 {"error":{"message":"cannot schedule new futures after shutdown","type":"InternalServerError","param":null,"code":500}}
    log upstream_failed then=moved to=10.0.0.3:8000
    connect 3a
    release A at 2
    book A at 3
wait 250
3a accepts
    to 3a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
3a streams
3a says "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "30\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\r\n"
3a says "data: [DONE]\n\n"
    to A: "e\r\ndata: [DONE]\n\n\r\n"
3a is done
    to A: "0\r\n\r\n"
    release A at 3
B connects
B posts /v1/chat/completions {"model":"m","messages":[]}
    to 3a: POST /v1/chat/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
    book B at 3
C connects
C posts /v1/chat/completions {"model":"m","messages":[]}
    to 2a: POST /v1/chat/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
    book C at 2
D connects
D posts /v1/chat/completions {"model":"m","messages":[]}
    connect 2b
    book D at 2
counters
    requests 4, retries 2, 2xx 1, upstream reused 2
