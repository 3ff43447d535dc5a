# Two engines are killed at once. A request at the first would be sent to the second and meet two
# deaths, like a poison request. It waits a moment: the second port refuses by then, and the third
# engine answers.
replicas 3
A connects
A posts /v1/chat/completions {"model":"m","messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
1a ends
    close 1a
    log upstream_failed then=moved to=10.0.0.2:8000
    release A at 1
    book A at 2
wait 250
    connect 2a
2a refuses
    close 2a
    log upstream_failed then=moved to=10.0.0.3:8000
    connect 3a
    release A at 2
    book A at 3
3a accepts
    to 3a: POST /v1/chat/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
3a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 3
counters
    requests 1, retries 2, 2xx 1, connect failures 1, upstream broken 1
