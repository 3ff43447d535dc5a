# A stream flows while the health checks hang: the engine is slow, not dead. When nothing arrives
# any more, it is down.
replicas 1
probes
set watchdog 0
set health-interval 1s
set health-timeout 500ms
set health-failures 2
set scrape-interval 1h

start
    connect 1a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 200 {"object":"list","data":[{"id":"m"}]}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
    log replica_metrics_unknown
A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 81 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1b streams
1b says "data: {\"choices\":[{\"delta\":{\"content\":\"w\"}}]}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "2f\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"w\"}}]}\n\n\r\n"
wait 1000
    to 1a: GET /health HTTP/1.1
1b says "data: {\"choices\":[{\"delta\":{\"content\":\"w\"}}]}\n\n"
    to A: "2f\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"w\"}}]}\n\n\r\n"
wait 400
1b says "data: {\"choices\":[{\"delta\":{\"content\":\"w\"}}]}\n\n"
    to A: "2f\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"w\"}}]}\n\n\r\n"
wait 1000
    close 1a
    connect 1c
1b says "data: {\"choices\":[{\"delta\":{\"content\":\"w\"}}]}\n\n"
    to A: "2f\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"w\"}}]}\n\n\r\n"
wait 1000
    close 1c
    connect 1d
1b says "data: {\"choices\":[{\"delta\":{\"content\":\"w\"}}]}\n\n"
    to A: "2f\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"w\"}}]}\n\n\r\n"
wait 1000
    close 1d
    connect 1e
1b says "data: [DONE]\n\n"
    to A: "e\r\ndata: [DONE]\n\n\r\n"
1b is done
    to A: "0\r\n\r\n"
    release A at 1
counters
    requests 1, 2xx 1, probes vetoed 3
wait 5000
    close 1e
    connect 1f
    close 1f
    connect 1g
    close 1g
    log replica_down
    close 1b
    connect 1h
    close 1h
    connect 1i
    close 1i
    connect 1j
    close 1j
    connect 1k
    close 1k
    connect 1l
    close 1l
    connect 1m
