# The search for a stored response finds no port either: it waits, as the request would.
replicas 2

ports 0
A connects
A posts /v1/responses {"model":"m","input":"x","previous_response_id":"resp_1"}
    cannot connect to 1
    log local_shortage
    cannot connect to 2
wait 300
    cannot connect to 1
    cannot connect to 2
    cannot connect to 2
    cannot connect to 1
ports 1
wait 1000
    connect 1a
    book A at 1
1a accepts
    to 1a: GET /v1/responses/resp_1 HTTP/1.1
1a answers 200 {}
    to 1a: POST /v1/responses HTTP/1.1; Content-Length: 57 "{\"model\":\"m\",\"input\":\"x\",\"previous_response_id\":\"resp_1\"}"
    release A at 1
    book A at 1
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
counters
    requests 1, 2xx 1, upstream reused 1
outcomes
    1: ok 2 not sent 3
    2: not sent 3
