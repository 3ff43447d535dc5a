# 500 goes on to the client as it is: the next replica would most likely say the same.
replicas 2

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 500 {"error":"boom"}
    to A: HTTP/1.1 500 X; Content-Length: 16 "{\"error\":\"boom\"}"
    log request
    release A at 1
counters
    requests 1, 5xx 1
