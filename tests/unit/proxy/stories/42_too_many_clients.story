# At connections-max the router closes the longest-idle connection, or else one that lingers after
# an error. A new or just-answered connection is kept, because a request may be on its way. If no
# connection can be closed, a new client gets 503 before it asks anything. A crowd of new
# connections is reset.
replicas 1
set connections-max 2

A connects
A gets /nowhere
    to A: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
B connects
wait 100
A gets /nowhere
    to A: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
C connects
    close B
C posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book C at 1
D connects
    to D: HTTP/1.1 503 Service Unavailable; Content-Length: 152; retry-after: 1; x-grapevine-limit: connections-max; Connection: close "{\"error\":{\"message\":\"Too many connections. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
    finish D
D ends
    close D
wait 100
E connects
    close A
E sends "GET / HTTP/9.9\r\n\r\n"
    to E: HTTP/1.1 505 HTTP Version Not Supported; Content-Length: 108; x-should-retry: false; Connection: close "{\"error\":{\"message\":\"HTTP version other than 1.0 and 1.1\",\"type\":\"BadRequestError\",\"param\":null,\"code\":505}}"
    finish E
wait 100
F connects
    close E
F posts /v1/completions {"model":"m","prompt":"x"}
    connect 1b
    book F at 1
G connects
    to G: HTTP/1.1 503 Service Unavailable; Content-Length: 152; retry-after: 1; x-grapevine-limit: connections-max; Connection: close "{\"error\":{\"message\":\"Too many connections. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
    finish G
H connects
    reset H
G ends
    close G
I connects
    to I: HTTP/1.1 503 Service Unavailable; Content-Length: 152; retry-after: 1; x-grapevine-limit: connections-max; Connection: close "{\"error\":{\"message\":\"Too many connections. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
    finish I
F ends
    close F
    close 1b
    log request end=client_gone
    release F at 1
J connects
J gets /nowhere
    to J: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
counters
    requests 6, 4xx 3, 5xx 1, invalid: malformed 1, invalid: path 3, connections refused 4, evicted 3, clients gone 1
