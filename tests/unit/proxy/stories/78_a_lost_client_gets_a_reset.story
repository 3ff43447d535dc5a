# A client that is lost before its answer ends must not take the part for the whole, so its
# connection is reset.
replicas 1

A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a streams
A is deaf
1a says "data: {\"text\":\"1\"}\n\n"
1a is done
    log upstream_failed then=cut
    log request end=engine_failed reason=no_terminal
    reset A
    release A at 1
counters
    requests 1, 2xx 1, cut: engine 1, upstream broken 1
