# A replica lists the model and answers 404 for it, before and after a new list: this counts against
# it, and is reported once, however often it is asked. A minute later it has the model again.
replicas 2
probes

start
    connect 1a
    connect 2a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 200 {"object":"list","data":[{"id":"m"}]}
2a accepts
    to 2a: GET /health HTTP/1.1
2a answers 200 ok
    log replica_up
    to 2a: GET /v1/models HTTP/1.1
2a answers 200 {"object":"list","data":[{"id":"m"}]}
A connects
wait 1000
    to 1a: GET /metrics HTTP/1.1
    to 2a: GET /metrics HTTP/1.1
1a answers 404 {}
    log replica_metrics_unknown
2a answers 404 {}
    log replica_metrics_unknown
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1b answers 404 {"error":{"message":"The model `m` does not exist.","type":"NotFoundError","param":"model","code":404}}
    connect 2b
    to 1a: GET /v1/models HTTP/1.1
    release A at 1
    book A at 2
2b accepts
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2b answers 200 {"from":2}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
1a answers 200 {"object":"list","data":[{"id":"m"}]}
A posts /v1/completions {"model":"m","prompt":"y"}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
    book A at 1
1b answers 404 {"error":{"message":"The model `m` does not exist.","type":"NotFoundError","param":"model","code":404}}
    log replica_rejects
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
    release A at 1
    book A at 2
2b answers 200 {"from":2}
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":2}"
    release A at 2
wait 61000
    to 1a: GET /v1/models HTTP/1.1
    connect 1c
    to 2a: GET /health HTTP/1.1
    close 1b
    close 2b
    close 1a
    close 1c
    close 2a
    connect 1d
    connect 2c
    connect 2d
    connect 1e
    close 1d
    close 2c
    connect 1f
    connect 2e
    close 2d
    connect 2f
    close 1e
    connect 1g
    close 1f
    log replica_down
    close 2e
    log replica_down
    connect 1h
    connect 2g
    close 1h
    close 2g
    connect 1i
    connect 2h
    close 1i
    close 2h
    connect 1j
    connect 2i
    close 1j
    close 2i
    connect 1k
    connect 2j
    close 1k
    close 2j
    connect 1l
    connect 2k
    close 1l
    close 2k
    connect 1m
    connect 2l
    close 2f
    close 1m
    close 2l
    connect 1n
    connect 2m
    close 1n
    close 2m
    connect 1o
    connect 2n
    close 1g
    close 1o
    close 2n
    connect 1p
    connect 2o
    close 1p
    close 2o
    connect 1q
    connect 2p
    close 1q
    close 2p
    connect 1r
    connect 2q
    close 1r
    close 2q
    connect 1s
    connect 2r
    close 1s
    close 2r
    connect 1t
    connect 2s
    close 1t
    close 2s
    connect 1u
    connect 2t
    close 1u
    close 2t
    connect 1v
    connect 2u
    close 1v
    close 2u
    connect 1w
    connect 2v
    close 1w
    close 2v
    connect 1x
    connect 2w
    close 1x
    close 2w
    connect 1y
    connect 2x
    close 1y
    close 2x
    connect 1z
    connect 2y
    close 1z
    close 2y
    connect 1a
    connect 2z
    close 1a
    close 2z
    connect 1b
    connect 2a
    close 1b
    close 2a
    connect 1c
    connect 2b
    close 1c
    close 2b
    connect 1d
    connect 2c
    close 1d
    close 2c
    connect 1e
    connect 2d
    close 1e
    close 2d
    connect 1f
    connect 2e
    close 1f
    close 2e
    connect 1g
    connect 2f
    close 1g
    close 2f
    connect 1h
    connect 2g
    close 1h
    close 2g
    connect 1i
    connect 2h
    close 1i
    close 2h
    connect 1j
    connect 2i
    close 1j
    close 2i
    connect 1k
    connect 2j
    close 1k
    close 2j
    connect 1l
    connect 2k
    close 1l
    close 2k
    connect 1m
    connect 2l
    close 1m
    close 2l
    connect 1n
    connect 2m
    close 1n
    close 2m
    connect 1o
    connect 2n
    close 1o
    close 2n
    connect 1p
    connect 2o
    close 1p
    close 2o
    connect 1q
    connect 2p
    close 1q
    close 2p
    connect 1r
    connect 2q
    close 1r
    close 2q
    connect 1s
    connect 2r
    close 1s
    close 2r
    connect 1t
    connect 2s
    close 1t
    close 2s
    connect 1u
    connect 2t
    close 1u
    close 2t
    connect 1v
    connect 2u
    close 1v
    close 2u
    connect 1w
    connect 2v
    close 1w
    close 2v
    connect 1x
    connect 2w
    close 1x
    close 2w
    connect 1y
    connect 2x
    close 1y
    close 2x
    connect 1z
    connect 2y
    close 1z
    close 2y
    connect 1a
    connect 2z
    close 1a
    close 2z
    connect 1b
    connect 2a
    close 1b
    close 2a
    connect 1c
    connect 2b
    close 1c
    close 2b
    connect 1d
    connect 2c
    close 1d
    close 2c
    connect 1e
    connect 2d
    close 1e
    close 2d
    connect 1f
    connect 2e
    close 1f
    close 2e
    connect 1g
    connect 2f
    close 1g
    close 2f
    connect 1h
    connect 2g
    close 1h
    close 2g
    connect 1i
    connect 2h
    close 1i
    close 2h
    connect 1j
    connect 2i
    close 1j
    close 2i
    connect 1k
    connect 2j
    close 1k
    close 2j
    connect 1l
    connect 2k
    close 1l
    close 2k
    connect 1m
    connect 2l
    close 1m
    close 2l
    connect 1n
    connect 2m
    close 1n
    close 2m
    connect 1o
    connect 2n
    close 1o
    close 2n
    connect 1p
    connect 2o
    close 1p
    close 2o
    connect 1q
    connect 2p
    close 1q
    close 2p
    connect 1r
    connect 2q
    close 1r
    close 2q
    connect 1s
    connect 2r
    close 1s
    close 2r
    connect 1t
    connect 2s
    close 1t
    close 2s
    connect 1u
    connect 2t
    close 1u
    close 2t
    connect 1v
    connect 2u
    close 1v
    close 2u
    connect 1w
    connect 2v
    close 1w
    close 2v
    connect 1x
    connect 2w
    close 1x
    close 2w
    connect 1y
    connect 2x
    close 1y
    close 2x
    connect 1z
    connect 2y
    close 1z
    close 2y
    connect 1a
    connect 2z
    close 1a
    close 2z
    connect 1b
    connect 2a
    close 1b
    close 2a
    connect 1c
    connect 2b
    close 1c
    close 2b
    connect 1d
    connect 2c
    close 1d
    close 2c
    connect 1e
    connect 2d
    close 1e
    close 2d
    connect 1f
    connect 2e
    close 1f
    close 2e
    connect 1g
    connect 2f
    close 1g
    close 2f
    connect 1h
    connect 2g
    close 1h
    close 2g
    connect 1i
    connect 2h
    close 1i
    close 2h
    connect 1j
    connect 2i
    close 1j
    close 2i
    connect 1k
    connect 2j
    close 1k
    close 2j
    connect 1l
    connect 2k
    close 1l
    close 2k
    connect 1m
    connect 2l
    close 1m
    close 2l
    connect 1n
    connect 2m
    close 1n
    close 2m
    connect 1o
    connect 2n
    close 1o
    close 2n
    connect 1p
    connect 2o
    close 1p
    close 2o
    connect 1q
    connect 2p
    close 1q
    close 2p
    connect 1r
    connect 2q
    close 1r
    close 2q
    connect 1s
    connect 2r
    close 1s
    close 2r
    connect 1t
    connect 2s
A posts /v1/completions {"model":"m","prompt":"z"}
    connect 1u
    book A at 1
1u accepts
    to 1u: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"z\"}"
1u answers 200 {"from":1}
    log replica_accepts
    to A: HTTP/1.1 200 X; Content-Length: 10 "{\"from\":1}"
    release A at 1
A posts /v1/completions {"model":"m","prompt":"z"}
    to 1u: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"z\"}"
    book A at 1
counters
    requests 4, retries 2, 2xx 3, upstream reused 3
