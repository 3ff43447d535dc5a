# Beyond connections-max a client gets a 503 before it has asked anything.
replicas 1
set connections-max 1

A connects
B connects
    to B: HTTP/1.1 503 Service Unavailable; Content-Length: 112; retry-after: 1; Connection: close "{\"error\":{\"message\":\"Too many connections, try again later.\",\"type\":\"overloaded_error\",\"param\":null,\"code\":503}}"
    log request
    finish B
B ends
    close B
A gets /nowhere
    to A: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
    log request
A ends
    close A
C connects
C gets /nowhere
    to C: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
    log request
counters
    requests 2, 4xx 2, connections refused 1
