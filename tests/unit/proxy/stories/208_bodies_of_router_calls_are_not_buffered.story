# The router buffers no request body that it answers itself: neither for calls that need no key or
# token, nor for calls that read their body (/explain), which parse it as it arrives. So strangers
# take no memory from clients with keys. A forbidden call is refused at its head.
replicas 1
set buffered-bytes-max 128KiB
set body-bytes-max 100KiB
set scrape-interval 1h
set health-interval 1h
client alice secret
probes

start
    connect 1a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 200 {"object":"list","data":[{"id":"m","object":"model","owned_by":"vllm"}]}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 vllm:num_requests_running 0
A connects
A sends "POST /ping HTTP/1.1\r\nHost: g\r\nContent-Length: 80000\r\n\r\n"
A sends "x"*79999
B connects to the probe port
B sends "GET /healthz HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n13880\r\n"
B sends "x"*80000
C connects to the admin port
C sends "POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 80000\r\nExpect: 100-continue\r\n\r\n"
    to C: HTTP/1.1 100 Continue
C sends "{\"model\":\"m\",\"prompt\":\""
C sends "x"*79975
D connects to the admin port
D sends "POST /explain HTTP/1.1\r\nHost: elsewhere\r\nContent-Length: 80000\r\nExpect: 100-continue\r\n\r\n"
    to D: HTTP/1.1 403 Forbidden; Content-Length: 237; Connection: close "{\"error\":{\"message\":\"The Host header (elsewhere) does not name this admin port: use its address, localhost or the name in admin-listen or admin-advertise, or give the admin token.\",\"type\":\"PermissionDeniedError\",\"param\":null,\"code\":403}}"
    finish D
D sends "x"*80000
E connects to the probe port
E sends "POST /explain HTTP/1.1\r\nHost: localhost\r\nContent-Length: 80000\r\n\r\n{"
    to E: HTTP/1.1 404 Not Found; Content-Length: 128; Connection: close "{\"error\":{\"message\":\"This port serves only GET /healthz, /readyz and /metrics.\",\"type\":\"NotFoundError\",\"param\":null,\"code\":404}}"
    finish E
F connects
F sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer secret\r\nContent-Length: 39000\r\n\r\n{\"model\":\"m\",\"prompt\":\""
F sends "x"*38975
F sends "\"}"
    connect 1b
    book F at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 39000 "{\"model\":\"m\",\"prompt\":\"x... 39000 bytes"
A sends "x"
    to A: HTTP/1.1 200 OK; Content-Length: 0
B sends "\r\n0\r\n\r\n"
    to B: HTTP/1.1 200 OK; Content-Length: 3 "ok\n"
C sends "\"}"
    to C: HTTP/1.1 200 OK; Content-Length: 712 "{\"policy\":\"cache_aware\",... 712 bytes"
A sends "POST /ping HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n1d4c0\r\n"
A sends "x"*110000
    to A: HTTP/1.1 413 Content Too Large; Content-Length: 114; x-grapevine-limit: body-bytes-max; Connection: close "{\"error\":{\"message\":\"The request body is too large.\",\"type\":\"RequestEntityTooLargeError\",\"param\":null,\"code\":413}}"
    finish A
1b answers 200 {}
    to F: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release F at 1
counters
    requests 3, 2xx 2, 4xx 1
