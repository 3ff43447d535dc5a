# Limits on clients' heads are settings; an engine's answer may have a longer head.
replicas 1
set head-bytes-max 1KiB
set headers-max 8

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a sends "HTTP/1.1 200 OK\r\n"
1a sends "X-Long: 0123456789012345678901234567890123456789\r\n"*50
1a sends "Content-Length: 2\r\n\r\n{}"
    to A: HTTP/1.1 200 OK; Content-Length: 2 "{}"
    release A at 1
B connects
B sends "GET /v1/models HTTP/1.1\r\nHost: g\r\n"
B sends "X: y\r\n"*8
    to B: HTTP/1.1 431 Request Header Fields Too Large; Content-Length: 88; x-grapevine-limit: headers-max; Connection: close "{\"error\":{\"message\":\"too many fields\",\"type\":\"BadRequestError\",\"param\":null,\"code\":431}}"
    finish B
B sends "\r\n"
