# Nobody has the stored response, and the last one that says so is not done saying it: its connection
# is let go before the request is sent.
replicas 1

A connects
A posts /v1/responses {"model":"m","previous_response_id":"resp_1","input":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: GET /v1/responses/resp_1 HTTP/1.1
1a sends "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{\"error\""
    close 1a
    connect 1b
    release A at 1
    book A at 1
1b accepts
    to 1b: POST /v1/responses HTTP/1.1; Content-Length: 57 "{\"model\":\"m\",\"previous_response_id\":\"resp_1\",\"input\":\"x\"}"
1b answers 404 {"error":{"message":"There is no such response."}}
    to A: HTTP/1.1 404 X; Content-Length: 50 "{\"error\":{\"message\":\"There is no such response.\"}}"
    log request
    release A at 1
counters
    requests 1, 4xx 1
