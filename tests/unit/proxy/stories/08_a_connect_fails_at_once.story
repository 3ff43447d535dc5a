# A connect that fails at once is treated like a connect that fails later.
replicas 2

A connects
the next connect fails
A posts /v1/completions {"model":"m","prompt":"x"}
    cannot connect to 1
    connect 2a
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2a answers 200 {"from":2}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
counters
    requests 1, retries 1, 2xx 1
