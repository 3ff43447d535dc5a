# An HTTP/1.0 engine ends its answer with the connection, or announces the length. An HTTP/1.0
# client gets a whole stream without chunks, then the end.
replicas 1

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a sends "HTTP/1.0 200 OK\r\n\r\nold"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "3\r\nold\r\n"
1a ends
    close 1a
    to A: "0\r\n\r\n"
    release A at 1
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1b sends "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold"
    close 1b
    to A: HTTP/1.1 200 OK; Content-Length: 3 "old"
    release A at 1
B connects
B sends "POST /v1/completions HTTP/1.0\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"x\"}"
    connect 1c
    book B at 1
1c accepts
    to 1c: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1c streams
1c says "data: {\"choices\":[{\"text\":\"a\"}]}\n\n"
    to B: HTTP/1.1 200 OK; Connection: close "data: {\"choices\":[{\"text\":\"a\"}]}\n\n"
1c says "data: [DONE]\n\n"
    to B: "data: [DONE]\n\n"
1c is done
    close B
    release B at 1
counters
    requests 3, 2xx 3
