# request-timeout covers the body, the wait for an answer and the answer. It is no evidence about
# the replica.
replicas 1
set request-timeout 5s

A connects
B connects
C connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
B posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1b
    book B at 1
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1b streams
1b says "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n"
    to B: HTTP/1.1 200 OK; Transfer-Encoding: chunked "2f\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n\r\n"
C sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 100\r\n\r\n{"
wait 4950
wait 50
    to A: HTTP/1.1 504 Gateway Timeout; Content-Length: 202; x-grapevine-limit: request-timeout "{\"error\":{\"message\":\"The request was not answered in the time that it has (request-timeout). Provider returned error 504 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":504}}"
    close 1a
    log request
    to B: "e5\r\ndata: {\"error\":{\"message\":\"The request was not answered in the time that it has (request-timeout): its answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    close 1b
    log request end=request_timeout reason=request_timeout limit=request-timeout
    close B
    to C: HTTP/1.1 504 Gateway Timeout; Content-Length: 202; x-grapevine-limit: request-timeout; Connection: close "{\"error\":{\"message\":\"The request was not answered in the time that it has (request-timeout). Provider returned error 504 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":504}}"
    log request
    finish C
    release A at 1
    release B at 1
counters
    requests 3, 2xx 1, 5xx 2, refused request time 2, cut: late 1
