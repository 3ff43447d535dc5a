# By default a known path behind a prefix is not found.
replicas 1
A connects
A gets /v1/responses/a/b
    to A: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
A posts /api/v1/chat/completions {"model":"m","messages":[]}
    to A: HTTP/1.1 404 Not Found; Content-Length: 22; Connection: close "{\"detail\":\"Not Found\"}"
    finish A
B connects
B posts /API/V1/messages {"model":"m","messages":[]}
    to B: HTTP/1.1 404 Not Found; Content-Length: 122; Connection: close "{\"type\":\"error\",\"error\":{\"type\":\"not_found_error\",\"message\":\"Not found.\"},\"request_id\":\"e58716494a0c2a2cffee02a0e80a2571\"}"
    finish B
