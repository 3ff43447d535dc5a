# Only the engine that made a stored response has it. If the engine is unknown, the router asks each
# replica in turn. It remembers the engine, and requests that continue the response go there.
replicas 3

A connects
A gets /v1/responses/r1
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
2a answers 200 {"id":"r1"}
    to A: HTTP/1.1 200 X; Content-Length: 11 "{\"id\":\"r1\"}"
    release A at 2
A gets /v1/responses/r1
    to 2a: GET /v1/responses/r1 HTTP/1.1
    book A at 2
2a answers 200 {"id":"r1"}
    to A: HTTP/1.1 200 X; Content-Length: 11 "{\"id\":\"r1\"}"
    release A at 2
A posts /v1/responses {"model":"m","previous_response_id":"r1","input":"and then?"}
    to 2a: POST /v1/responses HTTP/1.1; Content-Length: 61 "{\"model\":\"m\",\"previous_response_id\":\"r1\",\"input\":\"and then?\"}"
    book A at 2
2a answers 200 {"id":"r2","object":"response","usage":{"input_tokens":1}}
    to A: HTTP/1.1 200 X; Content-Length: 58 "{\"id\":\"r2\",\"object\":\"response\",\"usage\":{\"input_tokens\":1}}"
    release A at 2
A gets /v1/responses/r2
    to 2a: GET /v1/responses/r2 HTTP/1.1
    book A at 2
2a answers 200 {"id":"r2"}
    to A: HTTP/1.1 200 X; Content-Length: 11 "{\"id\":\"r2\"}"
    release A at 2
