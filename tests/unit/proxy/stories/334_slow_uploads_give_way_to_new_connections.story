# Slow heads are closed for new connections, then slow bodies, but none that arrives at a fair rate.
# The address with most of them loses first; of its connections, the one with the least progress for
# its age.
replicas 1
set connections-max 5

A connects from 192.0.2.1
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nX-Long: aaaaaaaaaaaaaaaaaaaaaaaaaa"
B connects from 192.0.2.9
B sends "POST /v1/comp"
C connects from 192.0.2.9
C sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\n"
D connects from 192.0.2.2
D sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 9000\r\n\r\n{\"model\":\"m\""
E connects from 192.0.2.3
E sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 90\r\n\r\n{\"model\":\"m\""
F connects
    close B
wait 150
G connects
    close A
G posts /v1/completions {"model":"m","prompt":"g"}
    connect 1a
    book G at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"g\"}"
H connects
    close F
H posts /v1/completions {"model":"m","prompt":"h"}
    connect 1b
    book H at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"h\"}"
I connects
    close C
I posts /v1/completions {"model":"m","prompt":"i"}
    connect 1c
    book I at 1
1c accepts
    to 1c: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"i\"}"
J connects
    to J: HTTP/1.1 503 Service Unavailable; Content-Length: 152; retry-after: 1; x-grapevine-limit: connections-max; Connection: close "{\"error\":{\"message\":\"Too many connections. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}"
    log request
    finish J
wait 900
E sends ",\"prompt\":\"                                                                 "
K connects
    close D
    log request end=client_slow reason=connections limit=connections-max
E sends "\"}"
    connect 1d
    book E at 1
1d accepts
    to 1d: POST /v1/completions HTTP/1.1; Content-Length: 90 "{\"model\":\"m\",\"prompt\":\"                                                                 \"}"
1d answers 200 {}
    to E: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release E at 1
K posts /v1/completions {"model":"m","prompt":"k"}
    to 1d: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"k\"}"
    book K at 1
L connects
    reset L
counters
    requests 6, 2xx 1, connections refused 2, evicted 5, upstream reused 1
