# The router answers every path on the admin port itself, and the admin port is no part of a drain.
# Forbidden calls are refused before their body is read, and the connection closes.
replicas 1

A connects to the admin port
A gets /metrics
    to A: HTTP/1.1 200 OK; Content-Length: 7 "# none\n"
drain
the port closes
A posts /replicas {"add":"http://10.0.0.2:8000"}
    to A: HTTP/1.1 403 Forbidden; Content-Length: 237; Connection: close "{\"error\":{\"message\":\"The Host header (grapevine) does not name this admin port: use its address, localhost or the name in admin-listen or admin-advertise, or give the admin token.\",\"type\":\"PermissionDeniedError\",\"param\":null,\"code\":403}}"
    finish A
B connects to the admin port
B sends "DELETE /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
    to B: HTTP/1.1 405 Method Not Allowed; Content-Length: 104; allow: GET, HEAD "{\"error\":{\"message\":\"/metrics takes GET, HEAD.\",\"type\":\"MethodNotAllowedError\",\"param\":null,\"code\":405}}"
B sends "nonsense\r\n\r\n"
    to B: HTTP/1.1 400 Bad Request; Content-Length: 89; Connection: close "{\"error\":{\"message\":\"malformed method\",\"type\":\"BadRequestError\",\"param\":null,\"code\":400}}"
    finish B
counters
    none
