# An operator that trusts all clients allows engine fields.
replicas 1
set engine-fields pass
A connects
A posts /v1/completions {"model":"m","prompt":"x","kv_transfer_params":{"a":1}}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 55 "{\"model\":\"m\",\"prompt\":\"x\",\"kv_transfer_params\":{\"a\":1}}"
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nX-Prefiller-Host-Port: h:1\r\nX-Request-Id: ___prefill_addr_1:1___\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"x\"}"
    to 1a: POST /v1/completions HTTP/1.1; X-Request-Id: ___prefill_addr_1:1___; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
    book A at 1
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2; x-request-id: ___prefill_addr_1:1___ "{}"
    release A at 1
counters
    requests 2, 2xx 2, upstream reused 1
