# A job, or a request to an unknown path, is not done twice. But a replica that denies access, or
# finds no such path, has started nothing: another replica is asked, and it counts against the
# first. Any other status of a POST goes to the client unchanged.
replicas 2
set other-paths pass
A connects
A posts /v1/videos {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/videos HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 401 {"error":"Unauthorized"}
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/videos HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2a answers 200 {"id":"video_1"}
    log replica_rejects
    to A: HTTP/1.1 200 X; Content-Length: 16 "{\"id\":\"video_1\"}"
    release A at 2
outcomes
    1: rejected 1
    2: ok 1
A posts /my/thing {"model":"m"}
    connect 2b
    book A at 2
2b accepts
    to 2b: POST /my/thing HTTP/1.1; Content-Length: 13 "{\"model\":\"m\"}"
2b answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 2
A gets /my/thing
    to 2b: GET /my/thing HTTP/1.1
    book A at 2
2b answers 404 {"error":"none"}
    to A: HTTP/1.1 404 X; Content-Length: 16 "{\"error\":\"none\"}"
    log request
    release A at 2
A posts /v1/videos {"model":"m","prompt":"x"}
    connect 2c
    book A at 2
2c accepts
    to 2c: POST /v1/videos HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2c answers 400 {"error":"bad"}
    to A: HTTP/1.1 400 X; Content-Length: 15 "{\"error\":\"bad\"}"
    log request
    release A at 2
outcomes
    1: rejected 1
    2: ok 2 rejected 2
counters
    requests 4, retries 1, 2xx 2, 4xx 2, upstream reused 1
