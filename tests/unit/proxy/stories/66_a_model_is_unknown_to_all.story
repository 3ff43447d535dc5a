# All replicas deny the model. The client gets the last answer unchanged.
replicas 2

A connects
A posts /v1/completions {"model":"other","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 30 "{\"model\":\"other\",\"prompt\":\"x\"}"
1a answers 404 {"error":{"message":"The model `other` does not exist.","param":"model"}}
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 30 "{\"model\":\"other\",\"prompt\":\"x\"}"
2a answers 404 {"error":{"message":"The model `other` does not exist.","param":"model","by":2}}
    to A: HTTP/1.1 404 X; Content-Length: 80 "{\"error\":{\"message\":\"The model `other` does not exist.\",\"param\":\"model\",\"by\":2}}"
    log request
    release A at 2
counters
    requests 1, retries 1, 4xx 1
