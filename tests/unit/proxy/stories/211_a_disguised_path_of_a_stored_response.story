# If other paths are passed, an engine may decode a disguised path to another key's stored response:
# such paths are not found for keys. A chat has no background, whatever its body says.
set other-paths pass
replicas 1
client alice gv-alice
client bob gv-bob tokens-per-minute=1000

A connects
A sends "GET /v1/responses/resp%5F1 HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\n\r\n"
    to A: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
A sends "GET /v1/r%65sponses/resp_1 HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\n\r\n"
    to A: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
A sends "GET /v1//responses/resp_1 HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\n\r\n"
    to A: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
A sends "GET /x/../v1/responses/resp_1 HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\n\r\n"
    to A: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
A sends "GET /any/other HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\n\r\n"
    connect 1a
    book A at 1
1a accepts
    to 1a: GET /any/other HTTP/1.1
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
A sends "POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\nContent-Length: 45\r\n\r\n{\"model\":\"m\",\"messages\":[],\"background\":true}"
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 45 "{\"model\":\"m\",\"messages\":[],\"background\":true}"
    book A at 1
