# /health is sent without the API key, and with it only after a refusal. All other probes carry the
# key. A refused key is logged once, and a new key is tried at once.
replicas 1
probes
key old
set scrape-interval 1h

start
    connect 1a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 401 {}
wait 50
    to 1a: GET /health HTTP/1.1; Authorization: Bearer old
1a answers 200 {}
    log replica_up
    to 1a: GET /v1/models HTTP/1.1; Authorization: Bearer old
1a answers 401 {}
    log replica_refuses_probes
wait 50
    to 1a: GET /metrics HTTP/1.1; Authorization: Bearer old
1a answers 401 {}
the key becomes new
wait 50
    to 1a: GET /metrics HTTP/1.1; Authorization: Bearer new
1a answers 200 {"object":"list","data":[{"id":"m"}]}
wait 50
    to 1a: GET /v1/models HTTP/1.1; Authorization: Bearer new
1a answers 200 vllm:num_requests_running 0
    log replica_takes_probes
    log replica_models_unknown
