# A rejection of a request that must not be done twice goes to the client unchanged; so does one
# that only the response's own replica can answer.
replicas 2
set other-paths pass
A connects
A posts /v1/unknown {"model":"m"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/unknown HTTP/1.1; Content-Length: 13 "{\"model\":\"m\"}"
1a answers 400 {"error":"bad"}
    to A: HTTP/1.1 400 X; Content-Length: 15 "{\"error\":\"bad\"}"
    log request
    release A at 1
A posts /v1/responses {"model":"m","input":"x","previous_response_id":"resp_1"}
    connect 2a
    book A at 2
2a accepts
    to 2a: GET /v1/responses/resp_1 HTTP/1.1
2a answers 404 {"error":"none"}
    to 1a: GET /v1/responses/resp_1 HTTP/1.1
    release A at 2
    book A at 1
1a answers 404 {"error":"none"}
    to 2a: POST /v1/responses HTTP/1.1; Content-Length: 57 "{\"model\":\"m\",\"input\":\"x\",\"previous_response_id\":\"resp_1\"}"
    release A at 1
    book A at 2
2a answers 404 {"error":"none"}
    to A: HTTP/1.1 404 X; Content-Length: 16 "{\"error\":\"none\"}"
    log request
    release A at 2
outcomes
    1: ok 1 rejected 1
    2: ok 1 rejected 1
counters
    requests 2, retries 1, 4xx 2, upstream reused 2
