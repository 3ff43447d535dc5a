# A distant engine closes a kept connection while a request is on its way. The end arrives a round
# trip, as measured by TCP, after the request was sent: the request is sent again on a fresh
# connection, though there is no other replica. A connection that ends later than two round trips
# was working.
replicas 1

a round trip takes 160
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
A posts /v1/completions {"model":"m","prompt":"y"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
    book A at 1
wait 320
1a ends
    close 1a
    connect 1b
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
1b answers 200 {"n":2}
    to A: HTTP/1.1 200 X; Content-Length: 7 "{\"n\":2}"
    release A at 1
A posts /v1/completions {"model":"m","prompt":"z"}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"z\"}"
    book A at 1
wait 321
1b breaks
    close 1b
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 161 "{\"error\":{\"message\":\"No replica answered (1 tried). Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 1
counters
    requests 3, 2xx 2, 5xx 1, refused bad gateway 1, upstream broken 1, upstream reused 2, upstream stale 1
