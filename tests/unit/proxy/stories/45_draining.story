# A router shuts down. It first reports not ready, and its answers close their connections; open
# requests go on. Then the port closes: idle connections close, a newly accepted connection has a
# moment for its first request, and waiting requests are answered.
replicas 1

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
B connects
B gets /nowhere
    to B: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
C connects
drain
B gets /nowhere
    to B: HTTP/1.1 404 Not Found; Content-Length: 22; Connection: close "{\"detail\":\"Not Found\"}"
    close B
D connects
D gets /nowhere
    to D: HTTP/1.1 404 Not Found; Content-Length: 22; Connection: close "{\"detail\":\"Not Found\"}"
    close D
E connects
E posts /v1/completions {"model":"m","prompt":"y"}
    connect 1b
    book E at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
F connects
the port closes
1b answers 200 {"n":2}
    close 1b
    to E: HTTP/1.1 200 X; Content-Length: 7; Connection: close "{\"n\":2}"
    close E
    release E at 1
C gets /nowhere
    to C: HTTP/1.1 404 Not Found; Content-Length: 22; Connection: close "{\"detail\":\"Not Found\"}"
    close C
wait 450
wait 50
    close F
1a answers 200 {"n":1}
    close 1a
    to A: HTTP/1.1 200 X; Content-Length: 7; Connection: close "{\"n\":1}"
    close A
    release A at 1
