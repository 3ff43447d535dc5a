# With client-half-close: answer a client that has sent its requests and closes its sending half
# gets the answers to its complete requests. The connection closes after the last.
replicas 1
set client-half-close answer

A connects
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"a\"}"
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
A ends
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2; Connection: close "{}"
    close A
    release A at 1
B connects
B posts /v1/chat/completions {"model":"m","stream":true,"messages":[{"role":"user","content":"b"}]}
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 70 "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"b\"}]}"
    book B at 1
B ends
1a streams
1a says "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n"
    to B: HTTP/1.1 200 OK; Transfer-Encoding: chunked; Connection: close "2f\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n\r\n"
1a says "data: [DONE]\n\n"
    to B: "e\r\ndata: [DONE]\n\n\r\n"
1a is done
    to B: "0\r\n\r\n"
    close B
    release B at 1
C connects
C sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"0\"}POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"c\"}POST /v1/comp"
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"0\"}"
    book C at 1
C ends
1a answers 200 {"n":1}
    to C: HTTP/1.1 200 X; Content-Length: 7 "{\"n\":1}"
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"c\"}"
    release C at 1
    book C at 1
1a answers 200 {"n":2}
    to C: HTTP/1.1 200 X; Content-Length: 7 "{\"n\":2}"
    close C
    release C at 1
D connects
D posts /v1/completions {"model":"m","prompt":"d"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"d\"}"
    book D at 1
D ends
1a answers 400 {"error":{"message":"no"}}
    to D: HTTP/1.1 400 X; Content-Length: 26; Connection: close "{\"error\":{\"message\":\"no\"}}"
    log request
    close D
    release D at 1
E connects
E posts /v1/completions {"model":"m","prompt":"e"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"e\"}"
    book E at 1
E breaks
    close E
    close 1a
    log request end=client_gone
    release E at 1
F connects
F sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 26\r\n\r\n{\"model\""
F ends
    close F
    log request end=client_gone
counters
    requests 7, 2xx 4, 4xx 1, clients gone 2, upstream reused 5
