# A 404 that was held back breaks off. The client has received nothing, so the router asks another
# replica. If the replica that may have the model is down, the router does not claim that the model
# is unknown.
replicas 2

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a sends "HTTP/1.1 404 Not Found\r\nContent-Length: 70\r\n\r\n{\"error\":"
1a breaks
    close 1a
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2a answers 404 {"error":{"message":"The model `m` does not exist.","param":"model"}}
    to A: HTTP/1.1 503 Service Unavailable; Content-Length: 174; retry-after: 1 "{\"error\":{\"message\":\"No replica that may serve this model is up. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
    release A at 2
