# The same for SGLang. It counts an answer's tokens at the end, and rounds its usage: the
# scheduler's count rises.
replicas 1
probes
engines sglang
set health-interval 1h
set scrape-interval 10s
set watchdog 0
set health-path /ready

start
    connect 1a
1a accepts
    to 1a: GET /ready HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
    log replica_models_unknown
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "sglang:num_running_reqs 1\nsglang:generation_tokens_total 77\nsglang:token_usage 0.13\nsglang:realtime_tokens_total{mode=\"decode\"} 5000\n"
wait 50
    to 1a: GET /server_info HTTP/1.1
1a answers 404 {}
A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 81 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1b streams
1b says "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
1b says "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "71\r\ndata: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\r\n"
wait 9900
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "sglang:num_running_reqs 1\nsglang:generation_tokens_total 77\nsglang:token_usage 0.13\nsglang:realtime_tokens_total{mode=\"decode\"} 5100\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "sglang:num_running_reqs 1\nsglang:generation_tokens_total 77\nsglang:token_usage 0.13\nsglang:realtime_tokens_total{mode=\"decode\"} 5200\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "sglang:num_running_reqs 1\nsglang:generation_tokens_total 77\nsglang:token_usage 0.13\nsglang:realtime_tokens_total{mode=\"decode\"} 5300\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "sglang:num_running_reqs 1\nsglang:generation_tokens_total 77\nsglang:token_usage 0.13\nsglang:realtime_tokens_total{mode=\"decode\"} 5400\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "sglang:num_running_reqs 1\nsglang:generation_tokens_total 77\nsglang:token_usage 0.13\nsglang:realtime_tokens_total{mode=\"decode\"} 5500\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "sglang:num_running_reqs 1\nsglang:generation_tokens_total 77\nsglang:token_usage 0.13\nsglang:realtime_tokens_total{mode=\"decode\"} 5600\n"
wait 50
    to 1a: GET /get_server_info HTTP/1.1
1a answers 404 {}
wait 9900
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "sglang:num_running_reqs 1\nsglang:generation_tokens_total 77\nsglang:token_usage 0.13\nsglang:realtime_tokens_total{mode=\"decode\"} 5700\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "sglang:num_running_reqs 1\nsglang:generation_tokens_total 77\nsglang:token_usage 0.13\nsglang:realtime_tokens_total{mode=\"decode\"} 5800\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "sglang:num_running_reqs 1\nsglang:generation_tokens_total 77\nsglang:token_usage 0.13\nsglang:realtime_tokens_total{mode=\"decode\"} 5900\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "sglang:num_running_reqs 1\nsglang:generation_tokens_total 77\nsglang:token_usage 0.13\nsglang:realtime_tokens_total{mode=\"decode\"} 6000\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "sglang:num_running_reqs 1\nsglang:generation_tokens_total 77\nsglang:token_usage 0.13\nsglang:realtime_tokens_total{mode=\"decode\"} 6100\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "sglang:num_running_reqs 1\nsglang:generation_tokens_total 77\nsglang:token_usage 0.13\nsglang:realtime_tokens_total{mode=\"decode\"} 6200\n"
wait 50
    to 1a: GET /server_info HTTP/1.1
1a answers 404 {}
wait 9900
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "sglang:num_running_reqs 1\nsglang:generation_tokens_total 77\nsglang:token_usage 0.13\nsglang:realtime_tokens_total{mode=\"decode\"} 6300\n"
wait 9950
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 "sglang:num_running_reqs 1\nsglang:generation_tokens_total 77\nsglang:token_usage 0.13\nsglang:realtime_tokens_total{mode=\"decode\"} 6400\n"
1b says "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"
    to A: "30\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\r\n"
