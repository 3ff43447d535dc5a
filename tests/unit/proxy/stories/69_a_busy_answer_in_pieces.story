# A replica's 503 arrives in pieces. Its head releases the booking, since the replica does no work,
# and the answer is forwarded.
replicas 1

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a sends "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nno"
    log upstream_failed then=answer
    to A: HTTP/1.1 503 Busy; Content-Length: 4; retry-after: 1 "no"
    release A at 1
1a sends "pe"
    to A: "pe"
    log request
