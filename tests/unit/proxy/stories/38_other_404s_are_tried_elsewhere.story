# A 404 for another reason may be that replica's fault, so the router asks another replica. It gives
# the same answer, so the client gets the first answer unchanged. The same holds for an answer too
# long to hold back.
replicas 2

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 404 {"detail":"Not Found"}
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2a answers 404 {"detail":"Not here"}
    to A: HTTP/1.1 404 X; Content-Length: 22 "{\"detail\":\"Not Found\"}"
    log request
    release A at 2
A posts /v1/completions {"model":"m","prompt":"y"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
    book A at 1
1a sends "HTTP/1.1 404 Not Found\r\nContent-Length: 9000\r\n\r\n"
1a sends "x"*5000
1a sends "x"*4000
    to A: HTTP/1.1 404 Not Found; Content-Length: 9000 "xxxxxxxxxxxxxxxxxxxxxxxx... 9000 bytes"
    log request
    release A at 1
outcomes
    1: rejected 2
    2: rejected 1
