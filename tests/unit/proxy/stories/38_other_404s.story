# A 404 that says something else goes on as it is; so does one that is too long to be held.
replicas 2

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 404 {"detail":"Not Found"}
    to A: HTTP/1.1 404 X; Content-Length: 22 "{\"detail\":\"Not Found\"}"
    log request
    release A at 1
A posts /v1/completions {"model":"m","prompt":"y"}
    connect 2a
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
2a sends "HTTP/1.1 404 Not Found\r\nContent-Length: 9000\r\n\r\n"
2a sends "x"*5000
2a sends "x"*4000
    to A: HTTP/1.1 404 Not Found; Content-Length: 9000 "xxxxxxxxxxxxxxxxxxxxxxxx... 9000 bytes"
    log request
    release A at 2
