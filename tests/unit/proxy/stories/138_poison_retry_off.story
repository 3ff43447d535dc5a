# Without the poison retry a suspect is answered at once. Requests that merely shared its engine are
# retried.
engines sglang
replicas 2
set policy round_robin
set poison-retry off

A connects
A posts /v1/completions {"model":"m","stream":true,"prompt":[5000]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 43 "{\"model\":\"m\",\"stream\":true,\"prompt\":[5000]}"
B connects
B posts /v1/completions {"model":"m","stream":true,"prompt":"b"}
    connect 2a
    book B at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"stream\":true,\"prompt\":\"b\"}"
2a streams
2a says "data: {\"choices\":[{\"text\":\"b\"}]}\n\n"
    to B: HTTP/1.1 200 OK; Transfer-Encoding: chunked "22\r\ndata: {\"choices\":[{\"text\":\"b\"}]}\n\n\r\n"
wait 2500
C connects
C posts /v1/completions {"model":"m","stream":true,"prompt":"c"}
    connect 1b
    book C at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 80 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"prompt\":\"c\"}"
wait 2600
1b ends
    close 1b
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2b
    release C at 1
    book C at 2
1a ends
    close 1a
    log poison_suspect replicas=10.0.0.1:8000
    log upstream_failed then=refused
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 241; x-grapevine-limit: poison-retry "{\"error\":{\"message\":\"An engine died after this request. The router does not send it to another engine, because poison-retry is off. Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 1
2b accepts
    to 2b: POST /v1/completions HTTP/1.1; Content-Length: 80 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"prompt\":\"c\"}"
counters
    requests 3, retries 1, 5xx 1, refused suspect 1, upstream broken 2
