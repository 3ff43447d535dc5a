# An engine works at one long answer and closed the connection of its probes. The router has no file
# descriptor left, so it cannot probe: the silence of that time is no evidence. When a descriptor is
# free, the probe may take as long as any other; the request stays.
replicas 2
probes
engines vllm
set health-interval 1h
set scrape-interval 1h
set watchdog 2s

start
    connect 1a
    connect 2a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
    log replica_models_unknown
2a accepts
    to 2a: GET /health HTTP/1.1
2a answers 200 ok
    log replica_up
    to 2a: GET /v1/models HTTP/1.1
2a answers 404 {}
    log replica_models_unknown
wait 50
    to 1a: GET /metrics HTTP/1.1
    to 2a: GET /metrics HTTP/1.1
1a answers 200 vllm:num_requests_running 0
2a answers 200 vllm:num_requests_running 0
A connects
A posts /v1/chat/completions {"model":"m","messages":[]}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
1a ends
    close 1a
files 2
wait 5000
    cannot connect to 1
    log local_shortage
    cannot connect to 1
    cannot connect to 1
    cannot connect to 1
    cannot connect to 1
    cannot connect to 1
    cannot connect to 1
    cannot connect to 1
    cannot connect to 1
    cannot connect to 1
files 9
wait 1600
    connect 1c
1c accepts
    to 1c: GET /metrics HTTP/1.1
1c answers 200 vllm:num_requests_running 1
1b answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
