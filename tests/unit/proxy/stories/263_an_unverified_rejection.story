# A rejection is checked elsewhere without result: the other replicas break, are full, or fail. The
# client gets the rejection unchanged; it counts against neither the replica nor the client.
replicas 3
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 400 {"error":"no chat template"}
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2a ends
    close 2a
    log upstream_failed then=moved to=10.0.0.3:8000
    release A at 2
    book A at 3
wait 300
    connect 3a
3a accepts
    to 3a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
3a ends
    close 3a
    log poison_suspect replicas=10.0.0.2:8000,10.0.0.3:8000
    log upstream_failed then=refused
    to A: HTTP/1.1 400 X; Content-Length: 28 "{\"error\":\"no chat template\"}"
    log request
    release A at 3
outcomes
    1: rejected 1
    2: broken 1
    3: broken 1
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 2b
    book A at 2
1a answers 400 {"error":"no chat template"}
    close 1a
2b accepts
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2b answers 503 {"error":"full"}
    log upstream_failed then=moved to=10.0.0.1:8000
    connect 1b
    release A at 2
    book A at 1
wait 300
outcomes
    1: rejected 1
    2: busy 1 broken 1
    3: broken 1
