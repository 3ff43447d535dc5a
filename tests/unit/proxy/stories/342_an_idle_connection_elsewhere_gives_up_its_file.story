# No file descriptor is left, and the chosen replica has no connection: an idle connection to
# another replica is closed for it.
replicas 2

A connects
A posts /v1/responses {"model":"m","input":"a"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/responses HTTP/1.1; Content-Length: 25 "{\"model\":\"m\",\"input\":\"a\"}"
1a answers 200 {"id":"resp_1","object":"response"}
    to A: HTTP/1.1 200 X; Content-Length: 35 "{\"id\":\"resp_1\",\"object\":\"response\"}"
    release A at 1
B connects
B sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\nX-Grapevine-Replica: 2\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"b\"}"
    connect 2a
    book B at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"b\"}"
2a answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 2
1a ends
    close 1a
files 1
A posts /v1/responses {"model":"m","input":"a","previous_response_id":"resp_1"}
    cannot connect to 1
    log local_shortage
    close 2a
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/responses HTTP/1.1; Content-Length: 57 "{\"model\":\"m\",\"input\":\"a\",\"previous_response_id\":\"resp_1\"}"
1b answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
counters
    requests 3, 2xx 3
outcomes
    1: ok 2
    2: ok 1
