# A client leaves during the answer: as in story 24. The replica is not blamed.
replicas 1

A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a streams
1a says "data: {\"text\":\"1\"}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "14\r\ndata: {\"text\":\"1\"}\n\n\r\n"
A breaks
    close A
    close 1a
    log request end=client_gone
    release A at 1
counters
    requests 1, 2xx 1, clients gone 1, cut: gone 1
