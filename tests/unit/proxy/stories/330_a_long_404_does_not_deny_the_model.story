# Only a complete answer shows that the model is unknown. The beginning of a long one, such as an
# error that repeats the request, may look similar: it is an ordinary rejection, and the other
# replica accepts the request. Nothing is learned about the model: after the back-off of 5 s the
# first replica is tried with it, and serves it.
replicas 2
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a sends "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 9000\r\n\r\n"
1a sends "{\"error\":{\"message\":\"The model `m` does not exist.\",\"param\":\"model\"}}\n"
1a sends " "*8930
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2a answers 200 {"from":2}
    log replica_rejects
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
B connects
B posts /v1/completions {"model":"m","prompt":"long"}
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"prompt\":\"long\"}"
    book B at 2
wait 5000
    close 1a
A posts /v1/completions {"model":"m","prompt":"y"}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
1b answers 200 {"from":1}
    log replica_accepts
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":1}"
    release A at 1
outcomes
    1: ok 1 rejected 1
    2: ok 1
counters
    requests 3, retries 1, 2xx 2, upstream reused 1
