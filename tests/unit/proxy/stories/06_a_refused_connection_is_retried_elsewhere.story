# A replica with a refused port has not seen the request. Another replica gets it, with a new
# booking.
replicas 2

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a refuses
    close 1a
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2a answers 200 {"choices":[]}
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 2
counters
    requests 1, retries 1, 2xx 1, connect failures 1
