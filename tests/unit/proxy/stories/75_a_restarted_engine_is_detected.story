# Falling counters show that an engine restarted: its believed cache is cleared. The names of its
# metrics show the kind of engine.
replicas 1
engines auto
probes

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
1a answers 200 "vllm:num_requests_running 0\nvllm:prompt_tokens_total 5000\nprocess_start_time_seconds 1000\n"
    log replica_engine
wait 1000
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "vllm:num_requests_running 0\nvllm:prompt_tokens_total 10\nprocess_start_time_seconds 2000\n"
    log replica_restarted
