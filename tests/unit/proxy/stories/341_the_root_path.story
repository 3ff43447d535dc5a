# Programs check with HEAD / or GET / whether a server is there. The router answers itself, without
# a replica. Other methods of / are treated like any path.
A connects
A sends "HEAD / HTTP/1.1\r\nHost: g\r\n\r\n"
    to A: HTTP/1.1 200 OK; Content-Length: 22
A gets /
    to A: HTTP/1.1 200 OK; Content-Length: 22 "Grapevine is running.\n"
A posts / {}
    to A: HTTP/1.1 404 Not Found; Content-Length: 22; Connection: close "{\"detail\":\"Not Found\"}"
    finish A
B connects
B sends "GET http://other.example HTTP/1.1\r\nHost: other.example\r\n\r\n"
    to B: HTTP/1.1 200 OK; Content-Length: 22 "Grapevine is running.\n"
counters
    requests 4, 2xx 3, 4xx 1, invalid: path 1
