# Programs try WebSocket first. The router answers 426 at once on each served path, so that they do
# without (a 405 was retried seven times). It needs no key, reaches no replica and counts as no
# refusal. Proxies that remove Upgrade leave Sec-WebSocket-Key. Other upgrades are ignored.
replicas 1
A connects
A sends "GET /v1/responses HTTP/1.1\r\nHost: g\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    to A: HTTP/1.1 426 Upgrade Required; Content-Length: 134; upgrade: HTTP/1.1; connection: upgrade "{\"error\":{\"message\":\"WebSocket is not served here: send the request with HTTP/1.1.\",\"type\":\"BadRequestError\",\"param\":null,\"code\":426}}"
A sends "GET /v1/messages HTTP/1.1\r\nHost: g\r\nConnection: keep-alive, upgrade\r\nUpgrade: h2c, WebSocket\r\n\r\n"
    to A: HTTP/1.1 426 Upgrade Required; Content-Length: 179; upgrade: HTTP/1.1; connection: upgrade "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"WebSocket is not served here: send the request with HTTP/1.1.\"},\"request_id\":\"6a604477f0713a2517889798c4e59b5d\"}"
A sends "GET /v1/models HTTP/1.1\r\nHost: g\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    to A: HTTP/1.1 426 Upgrade Required; Content-Length: 134; upgrade: HTTP/1.1; connection: upgrade "{\"error\":{\"message\":\"WebSocket is not served here: send the request with HTTP/1.1.\",\"type\":\"BadRequestError\",\"param\":null,\"code\":426}}"
A sends "GET /nowhere HTTP/1.1\r\nHost: g\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    to A: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
A sends "GET / HTTP/1.1\r\nHost: g\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    to A: HTTP/1.1 200 OK; Content-Length: 22 "Grapevine is running.\n"
A sends "GET / HTTP/1.0\r\nHost: g\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    to A: HTTP/1.1 200 OK; Content-Length: 22; Connection: close "Grapevine is running.\n"
    close A
counters
    requests 6, 2xx 2, 4xx 4, invalid: path 1, invalid: upgrade 3
