# A request routed by its head waits like any other, and its body is buffered meanwhile.
replicas 1
set replica-requests-max 1
set other-paths pass

A connects
B connects
A posts /v1/completions {"model":"m","prompt":"a"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
B sends "POST /upload HTTP/1.1\r\nHost: g\r\nContent-Length: 6\r\n\r\nabc"
B sends "def"
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    connect 1b
    release A at 1
    book B at 1
1b accepts
    to 1b: POST /upload HTTP/1.1; Content-Length: 6 "abcdef"
1b answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 1
counters
    requests 2, 2xx 2
