# A replica denies a model that it had served, and no other is known to serve it. The body is too
# long to be sent to each in turn, so the lists are read again first. Meanwhile nothing is booked.
replicas 2
set retries-max 0
probes

start
    connect 1a
    connect 2a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 500 {}
2a accepts
    to 2a: GET /health HTTP/1.1
2a answers 200 ok
    log replica_up
    to 2a: GET /v1/models HTTP/1.1
2a answers 200 {"object":"list","data":[{"id":"n"}]}
wait 1000
    to 1a: GET /metrics HTTP/1.1
    to 2a: GET /metrics HTTP/1.1
1a answers 404 {}
    log replica_metrics_unknown
2a answers 404 {}
    log replica_metrics_unknown
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    to 1a: GET /v1/models HTTP/1.1
    to 2a: GET /v1/models HTTP/1.1
1a answers 500 {}
2a answers 200 {"object":"list","data":[{"id":"n"}]}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1b answers 200 {"from":1}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":1}"
    release A at 1
wait 1000
    to 1a: GET /health HTTP/1.1
    to 2a: GET /health HTTP/1.1
1a answers 200 ok
2a answers 200 ok
A sends "POST /v1/audio/transcriptions HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 1100058\r\n\r\n--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--"
A sends "x"*1100000
    to 1b: POST /v1/audio/transcriptions HTTP/1.1; Content-Length: 1100058 "--b\r\nContent-Disposition... 872448 bytes"
    to 1b: "xxxxxxxxxxxxxxxxxxxxxxxx... 227610 bytes"
    book A at 1
1b answers 404 {"error":{"message":"The model `m` does not exist.","type":"NotFoundError","param":"model","code":404}}
    to 1a: GET /v1/models HTTP/1.1
    to 2a: GET /v1/models HTTP/1.1
    release A at 1
1a answers 200 {"object":"list","data":[{"id":"o"}]}
2a answers 200 {"object":"list","data":[{"id":"m"}]}
    connect 2b
    book A at 2
2b accepts
    to 2b: POST /v1/audio/transcriptions HTTP/1.1; Content-Length: 1100058 "--b\r\nContent-Disposition... 872448 bytes"
    to 2b: "xxxxxxxxxxxxxxxxxxxxxxxx... 227610 bytes"
2b answers 200 {"from":2}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
outcomes
    1: ok 1 not sent 1 rejected 1
    2: ok 1
counters
    requests 2, retries 1, 2xx 2, upstream reused 1
