# Two engines die while they are asked for a stored response. The question is a GET: the request
# itself was sent to none of them, and the third engine serves it.
replicas 3
A connects
A posts /v1/responses {"model":"m","input":"x","previous_response_id":"resp_1"}
    connect 1a
    book A at 1
1a accepts
    to 1a: GET /v1/responses/resp_1 HTTP/1.1
wait 300
1a ends
    close 1a
    log upstream_failed then=asks_next
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: GET /v1/responses/resp_1 HTTP/1.1
wait 1500
2a ends
    close 2a
    log upstream_failed then=asks_next
    connect 3a
    release A at 2
    book A at 3
3a accepts
    to 3a: GET /v1/responses/resp_1 HTTP/1.1
3a answers 404 {}
    connect 2b
    release A at 3
    book A at 2
2b accepts
    to 2b: POST /v1/responses HTTP/1.1; Content-Length: 57 "{\"model\":\"m\",\"input\":\"x\",\"previous_response_id\":\"resp_1\"}"
2b answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 2
