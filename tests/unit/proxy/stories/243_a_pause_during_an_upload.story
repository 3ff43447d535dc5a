# The router's process pauses for 10 s during an upload. The client was not slow: neither the byte
# rate (client-body-rate-min) nor the total time (client-body-total-timeout) counts the pause.
replicas 1
set client-body-timeout 20s
set client-body-rate-min 100
set client-body-total-timeout 40s

A connects
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 100000\r\n\r\nx"
wait 15000
A sends "x"*2000
the process stands still 10000
wait 14900
A sends "x"*1000
wait 9900
A sends "x"*2000
wait 100
wait 100
    to A: HTTP/1.1 408 Request Timeout; Content-Length: 205; x-grapevine-limit: client-body-total-timeout; Connection: close "{\"error\":{\"message\":\"The request body arrived too slowly (client-body-total-timeout). Provider returned error 408 (request timeout): try again later.\",\"type\":\"RequestTimeoutError\",\"param\":null,\"code\":408}}"
    log request
    finish A
counters
    requests 1, 4xx 1, refused slow upload 1, client time-outs 1
