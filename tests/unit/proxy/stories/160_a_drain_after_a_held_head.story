# An answer's head is held until its first token, and promises to keep the connection. A drain
# begins. The following request is still answered, as the last one.
replicas 1

A connects
A posts /v1/completions {"model":"m","stream":true,"prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"stream\":true,\"prompt\":\"x\"}"
1a streams
A gets /nowhere
drain
1a says "data: {\"choices\":[{\"text\":\"x\"}]}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "22\r\ndata: {\"choices\":[{\"text\":\"x\"}]}\n\n\r\n"
1a says "data: [DONE]\n\n"
    to A: "e\r\ndata: [DONE]\n\n\r\n"
1a is done
    to A: "0\r\n\r\n"
    to A: HTTP/1.1 404 Not Found; Content-Length: 22; Connection: close "{\"detail\":\"Not Found\"}"
    close A
    release A at 1
counters
    requests 2, 2xx 1, 4xx 1, invalid: path 1
