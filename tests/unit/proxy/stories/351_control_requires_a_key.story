# If clients have keys, only keys marked for control may steer engines, and the engines' key is sent
# along. Their requests count.
set engine-control-paths all
replicas 1
key sk-engines
client alice gv-alice
client ops gv-ops control requests-per-minute=1
client part gv-part control models=m

A connects
A sends "POST /flush_cache HTTP/1.1\r\nHost: g\r\nContent-Length: 0\r\n\r\n"
    to A: HTTP/1.1 401 Unauthorized; Content-Length: 156; www-authenticate: Bearer "{\"error\":{\"message\":\"No API key was given. Send yours as Authorization: Bearer KEY, or as x-api-key.\",\"type\":\"AuthenticationError\",\"param\":null,\"code\":401}}"
A sends "POST /flush_cache HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-alice\r\nContent-Length: 0\r\n\r\n"
    to A: HTTP/1.1 403 Forbidden; Content-Length: 148; x-grapevine-limit: client-keys-file "{\"error\":{\"message\":\"This API key may not control engines (`control` in client-keys-file).\",\"type\":\"PermissionDeniedError\",\"param\":null,\"code\":403}}"
    log request
A sends "POST /flush_cache HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-part\r\nContent-Length: 0\r\n\r\n"
    to A: HTTP/1.1 403 Forbidden; Content-Length: 147; x-grapevine-limit: client-keys-file "{\"error\":{\"message\":\"This API key is for certain models only: it may not control engines.\",\"type\":\"PermissionDeniedError\",\"param\":null,\"code\":403}}"
    log request
A sends "POST /flush_cache HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-ops\r\nContent-Length: 0\r\n\r\n"
    connect 1a
1a accepts
    to 1a: POST /flush_cache HTTP/1.1; Authorization: Bearer sk-engines; Content-Length: 0
1a answers 200 {}
    close 1a
    log engine_control replicas=1
    to A: HTTP/1.1 200 OK; Content-Length: 82 "{\"status\":200,\"replicas\":[{\"replica\":\"10.0.0.1:8000\",\"status\":200,\"answer\":\"{}\"}]}"
A sends "POST /flush_cache HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-ops\r\nContent-Length: 0\r\n\r\n"
    to A: HTTP/1.1 429 Too Many Requests; Content-Length: 207; retry-after: 81; x-grapevine-limit: requests-per-minute "{\"error\":{\"message\":\"Rate limit reached for the API key `ops`: requests-per-minute is 1. Provider returned error 429 (too many requests): try again in 81 s.\",\"type\":\"RateLimitError\",\"param\":null,\"code\":429}}"
    log request
counters
    requests 5, 2xx 1, 4xx 4, refused control 2, invalid: client key 1, refused key's limit 1
