# Both replicas reject the request with long bodies: the client gets the second answer as it
# arrives. If the second fails, the client gets an error with the first one's status and the
# beginning of its message.
replicas 2
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a sends "HTTP/1.1 422 X\r\nContent-Type: application/json\r\nContent-Length: 20000\r\n\r\n{\"detail\":[{\"input\":\"first"
1a sends "x"*9000
    close 1a
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2a sends "HTTP/1.1 422 X\r\nContent-Type: application/json\r\nContent-Length: 9013\r\n\r\n{\"detail\":\""
2a sends "y"*9000
    to A: HTTP/1.1 422 X; Content-Length: 9013 "{\"detail\":\"yyyyyyyyyyyyy... 9011 bytes"
2a sends "\"}"
    to A: "\"}"
    log request
    release A at 2
outcomes
    1: rejected 1
    2: rejected 1
B connects from 10.9.9.2
B posts /v1/chat/completions {"model":"m"}
    connect 1b
    book B at 1
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 13 "{\"model\":\"m\"}"
1b sends "HTTP/1.1 403 X\r\nContent-Type: application/json\r\nContent-Length: 20000\r\n\r\n{\"error\":{\"type\":\"Denied\",\"message\":\"not for you"
1b sends "x"*9000
    close 1b
    to 2a: POST /v1/chat/completions HTTP/1.1; Content-Length: 13 "{\"model\":\"m\"}"
    release B at 1
    book B at 2
2a ends
    close 2a
    connect 2b
2b accepts
    to 2b: POST /v1/chat/completions HTTP/1.1; Content-Length: 13 "{\"model\":\"m\"}"
2b ends
    close 2b
    log upstream_failed then=error
    to B: HTTP/1.1 403 Forbidden; Content-Length: 319 "{\"error\":{\"message\":\"not... 319 bytes"
    log request
    release B at 2
outcomes
    1: rejected 2
    2: broken 1 rejected 1
counters
    requests 2, retries 2, 4xx 2, refused by an engine 1, upstream broken 1, upstream reused 1, upstream stale 1
