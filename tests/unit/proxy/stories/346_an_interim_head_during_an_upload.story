# An interim head arrives while the client still sends its body. When the body is complete, the
# limit on the engine begins, though the engine has sent a byte.
replicas 1
set other-paths pass
set upstream-first-token-timeout 10s
set retries-max 0
A connects
A sends "PUT /v1/files HTTP/1.1\r\nHost: g\r\nContent-Length: 4\r\n\r\nab"
    connect 1a
    book A at 1
1a accepts
    to 1a: PUT /v1/files HTTP/1.1; Content-Length: 4 "ab"
1a sends "HTTP/1.1 100 Continue\r\n\r\n"
wait 12000
A sends "cd"
    to 1a: "cd"
wait 9000
wait 2000
    close 1a
    log upstream_failed then=error
    to A: HTTP/1.1 504 Gateway Timeout; Content-Length: 197; x-grapevine-limit: upstream-first-token-timeout "{\"error\":{\"message\":\"The replica did not answer in time (upstream-first-token-timeout). Provider returned error 504 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":504}}"
    log request
    release A at 1
