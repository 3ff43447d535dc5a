# Interim heads (1xx) and pieces of a head are no answer: the time limit for its beginning runs on.
# Then another replica gets the request.
replicas 2
set upstream-first-token-timeout 10s
A connects
A posts /v1/chat/completions {"model":"m","messages":[],"stream":true}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"messages\":[],\"stream\":true}"
wait 4000
1a sends "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
wait 4000
1a sends "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 2"
wait 1900
1a sends "0"
wait 200
    close 1a
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"messages\":[],\"stream\":true}"
2a sends "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    to A: HTTP/1.1 200 OK; Content-Length: 2 "{}"
    release A at 2
