# The router's process was stopped, or its machine slept. Bytes that arrived meanwhile are still
# unread. All time limits are extended by the pause, so that nothing is cut that was not slow.
replicas 1
set upstream-idle-timeout 3s
set client-head-timeout 2s

A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a streams
B connects
B sends "GET /"
the process stands still 60000
1a says "data: {\"text\":\"1\"}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "14\r\ndata: {\"text\":\"1\"}\n\n\r\n"
B sends "nowhere HTTP/1.1\r\nHost: g\r\n\r\n"
    to B: HTTP/1.1 404 Not Found; Content-Length: 22 "{\"detail\":\"Not Found\"}"
wait 3000
    close 1a
    log upstream_failed then=error_event
    to A: "da\r\ndata: {\"error\":{\"message\":\"The replica was silent for too long (upstream-idle-timeout): its answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    log request end=engine_failed reason=idle limit=upstream-idle-timeout
    close A
    release A at 1
