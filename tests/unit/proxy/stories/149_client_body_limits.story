# A body must arrive at client-body-rate-min bytes a second, averaged over 30 s, and within
# client-body-total-timeout, else 408. Occasional pieces do not extend the time without end.
replicas 1
set client-body-timeout 20s
set client-body-rate-min 100
set client-body-total-timeout 2m

A connects
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 100000\r\n\r\n"
A sends "x"*3000
wait 15000
A sends "x"
wait 15000
A sends "x"
wait 15000
A sends "x"
wait 15000
A sends "x"
    to A: HTTP/1.1 408 Request Timeout; Content-Length: 200; x-grapevine-limit: client-body-rate-min; Connection: close "{\"error\":{\"message\":\"The request body arrived too slowly (client-body-rate-min). Provider returned error 408 (request timeout): try again later.\",\"type\":\"RequestTimeoutError\",\"param\":null,\"code\":408}}"
    log request
    finish A
B connects
B sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 100000\r\n\r\n"
wait 15000
B sends "x"*3000
wait 15000
    close A
B sends "x"*3000
wait 15000
B sends "x"*3000
wait 15000
B sends "x"*3000
wait 15000
B sends "x"*3000
wait 15000
B sends "x"*3000
wait 15000
B sends "x"*3000
wait 14000
wait 1000
    to B: HTTP/1.1 408 Request Timeout; Content-Length: 205; x-grapevine-limit: client-body-total-timeout; Connection: close "{\"error\":{\"message\":\"The request body arrived too slowly (client-body-total-timeout). Provider returned error 408 (request timeout): try again later.\",\"type\":\"RequestTimeoutError\",\"param\":null,\"code\":408}}"
    log request
    finish B
counters
    requests 2, 4xx 2, refused slow upload 2, client time-outs 2
