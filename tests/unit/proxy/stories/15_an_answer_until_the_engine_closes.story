# An answer without length or chunks ends with the engine's connection. The client gets it in
# chunks, and the client's connection stays open.
replicas 1

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a sends "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabc"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "3\r\nabc\r\n"
1a sends "def"
    to A: "3\r\ndef\r\n"
1a ends
    close 1a
    to A: "0\r\n\r\n"
    release A at 1
A gets /nowhere
    to A: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
