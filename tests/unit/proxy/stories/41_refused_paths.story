# Paths that control an engine are closed to clients (403). Unknown paths get 404. Known paths
# accept only their methods (405). The connection stays open unless a body is being sent.
replicas 1

A connects
A gets /flush_cache
    to A: HTTP/1.1 403 Forbidden; Content-Length: 135; x-grapevine-limit: engine-control-paths "{\"error\":{\"message\":\"This path controls an engine and is not open to clients.\",\"type\":\"PermissionDeniedError\",\"param\":null,\"code\":403}}"
    log request
A gets /nowhere
    to A: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
A gets /v1/chat/completions
    to A: HTTP/1.1 405 Method Not Allowed; Content-Length: 31; allow: POST "{\"detail\":\"Method Not Allowed\"}"
A sends "OPTIONS * HTTP/1.1\r\nHost: g\r\n\r\n"
    to A: HTTP/1.1 204 No Content; allow: GET, HEAD, POST, OPTIONS
A posts /flush_cache {}
    to A: HTTP/1.1 403 Forbidden; Content-Length: 135; x-grapevine-limit: engine-control-paths; Connection: close "{\"error\":{\"message\":\"This path controls an engine and is not open to clients.\",\"type\":\"PermissionDeniedError\",\"param\":null,\"code\":403}}"
    log request
    finish A
counters
    requests 5, 2xx 1, 4xx 4, invalid: path 2, refused control 2
