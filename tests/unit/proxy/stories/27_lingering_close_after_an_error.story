# After an error the client may still be sending. Closing at once would cause a reset that overtakes
# the error. So the router closes only its half and discards what arrives; it closes fully when the
# client does, or after 30 s. Many clients read only after sending their whole body.
replicas 1

A connects
A sends "GET / HTTP/9.9\r\n\r\n"
    to A: HTTP/1.1 505 HTTP Version Not Supported; Content-Length: 108; x-should-retry: false; Connection: close "{\"error\":{\"message\":\"HTTP version other than 1.0 and 1.1\",\"type\":\"BadRequestError\",\"param\":null,\"code\":505}}"
    finish A
A sends "more and more"
A ends
    close A
B connects
B sends "\x00\r\n\r\n"
    to B: HTTP/1.1 400 Bad Request; Content-Length: 89; Connection: close "{\"error\":{\"message\":\"malformed method\",\"type\":\"BadRequestError\",\"param\":null,\"code\":400}}"
    finish B
wait 29900
B sends "more"
wait 100
    close B
