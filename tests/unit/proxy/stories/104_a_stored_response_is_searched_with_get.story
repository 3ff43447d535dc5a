# A request continues a stored response whose replica is unknown. The router asks replica by replica
# with a GET; only the one that has the response gets the body. If none has it, a replica reports
# that.
replicas 3
A connects
A posts /v1/responses {"model":"m","previous_response_id":"r1","input":"and then?"}
    connect 1a
    book A at 1
1a accepts
    to 1a: GET /v1/responses/r1 HTTP/1.1
1a answers 404 {"error":{"message":"no such response"}}
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: GET /v1/responses/r1 HTTP/1.1
2a breaks
    close 2a
    log upstream_failed then=asks_next
    connect 3a
    release A at 2
    book A at 3
3a accepts
    to 3a: GET /v1/responses/r1 HTTP/1.1
3a answers 200 {"id":"r1"}
    to 3a: POST /v1/responses HTTP/1.1; Content-Length: 61 "{\"model\":\"m\",\"previous_response_id\":\"r1\",\"input\":\"and then?\"}"
    release A at 3
    book A at 3
3a answers 200 {"id":"r2"}
    to A: HTTP/1.1 200 X; Content-Length: 11 "{\"id\":\"r2\"}"
    release A at 3
A posts /v1/responses {"model":"m","previous_response_id":"no /../path","input":"x"}
    to 1a: POST /v1/responses HTTP/1.1; Content-Length: 62 "{\"model\":\"m\",\"previous_response_id\":\"no /../path\",\"input\":\"x\"}"
    book A at 1
1a answers 404 {"error":{"message":"no such response"}}
    to A: HTTP/1.1 404 X; Content-Length: 40 "{\"error\":{\"message\":\"no such response\"}}"
    log request
    release A at 1
A posts /v1/responses {"model":"m","previous_response_id":"r7","input":"x"}
    to 1a: GET /v1/responses/r7 HTTP/1.1
    book A at 1
1a answers 404 {"error":{"message":"no such response"}}
    connect 2b
    release A at 1
    book A at 2
