# If the end of the connection ends the answer, every cut is a reset: for a client that does not
# read, and at shutdown.
replicas 1
set client-write-timeout 5s

A connects
A sends "POST /v1/completions HTTP/1.0\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"x\"}"
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a streams
A takes nothing
1a says "data: {\"choices\":[{\"text\":\"hel\"}]}\n\n"
    queue for A: 191 bytes
wait 5000
    reset A
    close 1a
    log request end=client_slow reason=timeout limit=client-write-timeout
    release A at 1
B connects
B sends "POST /v1/completions HTTP/1.0\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"x\"}"
    connect 1b
    book B at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1b streams
1b says "data: {\"choices\":[{\"text\":\"hel\"}]}\n\n"
    to B: HTTP/1.1 200 OK; Connection: close "data: {\"choices\":[{\"text\":\"hel\"}]}\n\n"
the node stops
    to B: "data: {\"error\":{\"message\":\"The router is stopping: the answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n"
    reset B
    close 1b
    log request end=stopped reason=stopping
    release B at 1
