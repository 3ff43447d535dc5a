# A vLLM that has lost its worker is silent for seconds, then reports it. It rejects requests that
# would kill its core, so the waiting request is no suspect: it goes to the other, busy engine.
replicas 2
set watchdog 3s

A connects
A posts /v1/completions {"model":"m","stream":true,"prompt":"a"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"stream\":true,\"prompt\":\"a\"}"
B connects
B posts /v1/completions {"model":"m","stream":true,"prompt":"b"}
    connect 2a
    book B at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"stream\":true,\"prompt\":\"b\"}"
2a streams
2a says "data: {\"choices\":[{\"text\":\"b\"}]}\n\n"
    to B: HTTP/1.1 200 OK; Transfer-Encoding: chunked "22\r\ndata: {\"choices\":[{\"text\":\"b\"}]}\n\n\r\n"
wait 5000
1a answers 500 {"error":{"message":"EngineCore encountered an issue. See stack trace (above) for the root cause.","code":500}}
    log upstream_failed then=moved to=10.0.0.2:8000
    release A at 1
    book A at 2
wait 250
    connect 2b
2b accepts
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"stream\":true,\"prompt\":\"a\"}"
2b streams
2b says "data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: [DONE]\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "30\r\ndata: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: [DONE]\n\n\r\n"
2b is done
    to A: "0\r\n\r\n"
    release A at 2
counters
    requests 2, retries 1, 2xx 1
