# A request keeps the client's id, in full. An id that cannot be logged is replaced.
replicas 1
set access-log all

A connects
A sends "GET /nowhere HTTP/1.1\r\nHost: g\r\nX-Request-Id: mine-1\r\n\r\n"
    to A: HTTP/1.1 404 Not Found; Content-Length: 22; x-request-id: mine-1 "{\"detail\":\"Not Found\"}"
    log request
A sends "GET /nowhere HTTP/1.1\r\nHost: g\r\nX-Request-Id: not mine\r\n\r\n"
    to A: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
    log request
