# A probe that meets the 408 of an idle connection is repeated too. From answers to probes the
# router learns how far an engine is behind anything that ends TCP (a load balancer, a sidecar): a
# connection that ends within twice the fastest recent answer was stale.
replicas 1
probes
set health-failures 1
set scrape-interval 1h

start
    connect 1a
1a accepts
    to 1a: GET /health HTTP/1.1
wait 150
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
wait 200
1a answers 200 {"object":"list","data":[{"id":"m"}]}
wait 50
    to 1a: GET /metrics HTTP/1.1
wait 150
1a answers 200 vllm:num_requests_running 0
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1b answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
A posts /v1/completions {"model":"m","prompt":"y"}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
    book A at 1
wait 300
1b ends
    close 1b
    connect 1c
1c accepts
    to 1c: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"y\"}"
1c answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
A posts /v1/completions {"model":"m","prompt":"z"}
    to 1c: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"z\"}"
    book A at 1
wait 301
    to 1a: GET /metrics HTTP/1.1
1c ends
    close 1c
    connect 1d
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 161 "{\"error\":{\"message\":\"No replica answered (1 tried). Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 1
wait 1000
1a answers 408 {}
    close 1a
    connect 1e
1e accepts
    to 1e: GET /metrics HTTP/1.1
1e answers 200 vllm:num_requests_running 0
counters
    requests 3, 2xx 2, 5xx 1, refused bad gateway 1, upstream broken 1, upstream reused 2, upstream stale 1
