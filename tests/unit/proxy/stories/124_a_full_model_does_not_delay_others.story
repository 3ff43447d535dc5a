# Requests for a full model delay no request for another model: they wait in a separate lane.
replicas 2
set replica-requests-max 1

A connects
B connects
C connects
D connects
A posts /v1/responses {"model":"m","input":"a"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/responses HTTP/1.1; Content-Length: 25 "{\"model\":\"m\",\"input\":\"a\"}"
1a answers 200 {"id":"resp_1","object":"response","status":"completed"}
    to A: HTTP/1.1 200 X; Content-Length: 56 "{\"id\":\"resp_1\",\"object\":\"response\",\"status\":\"completed\"}"
    release A at 1
A posts /v1/responses {"model":"m","input":"b","previous_response_id":"resp_1"}
    to 1a: POST /v1/responses HTTP/1.1; Content-Length: 57 "{\"model\":\"m\",\"input\":\"b\",\"previous_response_id\":\"resp_1\"}"
    book A at 1
B posts /v1/responses {"model":"m","input":"c","previous_response_id":"resp_1"}
C posts /v1/completions {"model":"m","prompt":"x"}
    connect 2a
    book C at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
D posts /v1/completions {"model":"m","prompt":"y"}
2a answers 200 {}
    to C: HTTP/1.1 200 X; Content-Length: 2 "{}"
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
    release C at 2
    book D at 2
2a answers 200 {}
    to D: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release D at 2
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    to 1a: POST /v1/responses HTTP/1.1; Content-Length: 57 "{\"model\":\"m\",\"input\":\"c\",\"previous_response_id\":\"resp_1\"}"
    release A at 1
    book B at 1
1a answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 1
counters
    requests 5, 2xx 5, upstream reused 3
