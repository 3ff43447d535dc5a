# The port is closed while a used connection is idle. The client may have sent its next request
# before it could know. The request is served, and its answer closes the connection. The same holds
# after an answer whose head promised to keep the connection. A connection without a byte for 2 s
# closes.
replicas 1

A connects
A gets /nowhere
    to A: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
B connects
B gets /nowhere
    to B: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
C connects
C posts /v1/completions {"model":"m","prompt":"x","stream":true}
    connect 1a
    book C at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"prompt\":\"x\",\"stream\":true}"
1a streams
1a says "data: {\"choices\":[{\"text\":\"a\"}]}\n\n"
    to C: HTTP/1.1 200 OK; Transfer-Encoding: chunked "22\r\ndata: {\"choices\":[{\"text\":\"a\"}]}\n\n\r\n"
D connects
D posts /v1/completions {"model":"m","prompt":"y"}
    connect 1b
    book D at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
drain
the port closes
wait 1900
A gets /nowhere
    to A: HTTP/1.1 404 Not Found; Content-Length: 22; Connection: close "{\"detail\":\"Not Found\"}"
    close A
1a says "data: [DONE]\n\n"
    to C: "e\r\ndata: [DONE]\n\n\r\n"
1a is done
    close 1a
    to C: "0\r\n\r\n"
    release C at 1
1b answers 200 {}
    close 1b
    to D: HTTP/1.1 200 X; Content-Length: 2; Connection: close "{}"
    close D
    release D at 1
wait 100
    close B
C gets /nowhere
    to C: HTTP/1.1 404 Not Found; Content-Length: 22; Connection: close "{\"detail\":\"Not Found\"}"
    close C
