# The router cannot read compressed bytes: they pass as they arrive, and no missing end is reported.
replicas 1
set ask-usage off

A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a sends "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked
1a says "\x1f\x8b\x08 packed"
    to A: "a\r\n\x1f\x8b\x08 packed\r\n"
1a is done
    to A: "0\r\n\r\n"
    release A at 1
counters
    requests 1, 2xx 1
outcomes
    1: ok 1
