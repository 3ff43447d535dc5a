# Engines hang, and their connections use up the local ports towards them. No port is left for a
# probe, which is their own fault: they count as stalled anyway.
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
ports 2
A connects
A posts /v1/chat/completions {"model":"m","messages":[]}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
B connects
B posts /v1/chat/completions {"model":"m","messages":[]}
    connect 2b
    book B at 2
2b accepts
    to 2b: POST /v1/chat/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
C connects
C posts /v1/chat/completions {"model":"m","messages":[]}
    cannot connect to 1
    log local_shortage
    cannot connect to 2
wait 5000
    cannot connect to 2
    cannot connect to 1
    cannot connect to 1
    cannot connect to 2
    to 1a: GET /metrics HTTP/1.1
    to 2a: GET /metrics HTTP/1.1
    cannot connect to 1
    cannot connect to 2
    cannot connect to 2
    cannot connect to 1
    log replica_stalled
    log replica_stalled
    cannot connect to 2
    cannot connect to 1
    cannot connect to 1
    cannot connect to 2
    cannot connect to 2
    cannot connect to 1
2b answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    to 2b: POST /v1/chat/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
    release B at 2
    book C at 2
2b answers 200 {}
    to C: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release C at 2
2b answers 200 {}
    reset 2b
