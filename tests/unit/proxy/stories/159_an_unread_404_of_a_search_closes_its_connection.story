# The last replica asked for a stored response answers no, and its body is still to come. The router
# closes that connection, and sends the request on another.
replicas 1
A connects
A posts /v1/responses {"model":"m","previous_response_id":"r1","input":"and then?"}
    connect 1a
    book A at 1
1a accepts
    to 1a: GET /v1/responses/r1 HTTP/1.1
1a sends "HTTP/1.1 404 X\r\nContent-Length: 100\r\n\r\n{"
    close 1a
    connect 1b
    release A at 1
    book A at 1
1b accepts
    to 1b: POST /v1/responses HTTP/1.1; Content-Length: 61 "{\"model\":\"m\",\"previous_response_id\":\"r1\",\"input\":\"and then?\"}"
1b answers 404 {"error":{"message":"no such response"}}
    to A: HTTP/1.1 404 X; Content-Length: 40 "{\"error\":{\"message\":\"no such response\"}}"
    log request
    release A at 1
A posts /v1/chat/completions {"model":"m"}
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 13 "{\"model\":\"m\"}"
    book A at 1
1b answers 200 {"usage":{}}
    to A: HTTP/1.1 200 X; Content-Length: 12 "{\"usage\":{}}"
    release A at 1
