# The router cannot read the engines' model lists, because they require an API key. A 404 for an
# unknown model is held back and another replica is asked. The router remembers that the first
# replica lacks the model.
replicas 2

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a sends "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 69\r\n\r\n{\"error\":{\"message\":\"The model `m` "
1a sends "does not exist.\",\"param\":\"model\"}}"
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2a answers 200 {"from":2}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
A posts /v1/completions {"model":"m","prompt":"y"}
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
    book A at 2
2a answers 200 {"from":2}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
