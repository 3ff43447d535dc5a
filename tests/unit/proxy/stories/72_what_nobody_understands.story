# A body that the router cannot read is routed by load all the same: the engine says what is wrong.
replicas 1

A connects
A posts /v1/completions {"model":
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 9 "{\"model\":"
1a answers 400 {"error":"no JSON"}
    to A: HTTP/1.1 400 X; Content-Length: 19 "{\"error\":\"no JSON\"}"
    log request
    release A at 1
