# An engine's many small chunks are sent to the client in few writes, without losing a byte.
replicas 1

A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a streams
1a says "data: {\"text\":\"x\"}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "14\r\ndata: {\"text\":\"x\"}\n\n\r\n"
1a sends "1\r\na\r\n1\r\nb\r\n"*50
    to A: "3b\r\nabababababababababababababababababababababababababababababa\r\n"
    to A: "29\r\nbabababababababababababababababababababab\r\n"
1a says "\n\ndata: [DONE]\n\n"
    to A: "10\r\n\n\ndata: [DONE]\n\n\r\n"
1a is done
    to A: "0\r\n\r\n"
    release A at 1
