# The error names the setting whose time has passed, in the form of each API. Here no token follows
# a keep-alive (upstream-first-token-timeout).
replicas 1
set stream-hold 2s
set upstream-first-token-timeout 6s
set request-timeout 30s

A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
B connects
B posts /v1/completions {"model":"m","stream":true,"prompt":"x"}
    connect 1b
    book B at 1
C connects
C posts /v1/messages {"model":"m","stream":true,"messages":[]}
    connect 1c
    book C at 1
D connects
D posts /v1/responses {"model":"m","stream":true,"input":"x"}
    connect 1d
    book D at 1
E connects
E posts /generate {"text":"x","stream":true}
    connect 1e
    book E at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"stream\":true,\"prompt\":\"x\"}"
1c accepts
    to 1c: POST /v1/messages HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1d accepts
    to 1d: POST /v1/responses HTTP/1.1; Content-Length: 39 "{\"model\":\"m\",\"stream\":true,\"input\":\"x\"}"
1e accepts
    to 1e: POST /generate HTTP/1.1; Content-Length: 26 "{\"text\":\"x\",\"stream\":true}"
1a streams
1b streams
1c streams
1d streams
1e streams
1a says "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
1b says ": hold on\n\n"
1c says "event: message_start\ndata: {\"type\":\"message_start\"}\n\n"
1d says "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0}\n\n"
1e says ": hold on\n\n"
wait 2000
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "41\r\ndata: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n\r\n"
    to B: HTTP/1.1 200 OK; Transfer-Encoding: chunked "b\r\n: hold on\n\n\r\n"
    to C: HTTP/1.1 200 OK; Transfer-Encoding: chunked "24\r\nevent: ping\ndata: {\"type\": \"ping\"}\n\n\r\n"
    to D: HTTP/1.1 200 OK; Transfer-Encoding: chunked "4f\r\nevent: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0}\n\n\r\n"
    to E: HTTP/1.1 200 OK; Transfer-Encoding: chunked "b\r\n: hold on\n\n\r\n"
wait 4000
    close 1a
    log upstream_failed then=error_event
    to A: "c7\r\ndata: {\"error\":{\"message\":\"No replica answered (1 tried; upstream-first-token-timeout). Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    log request end=engine_failed reason=first_token limit=upstream-first-token-timeout
    close A
    close 1b
    log upstream_failed then=error_event
    to B: "c7\r\ndata: {\"error\":{\"message\":\"No replica answered (1 tried; upstream-first-token-timeout). Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    log request end=engine_failed reason=first_token limit=upstream-first-token-timeout
    close B
    close 1c
    log upstream_failed then=error_event
    to C: "ff\r\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"No replica answered (1 tried; upstream-first-token-timeout). Provider returned error 503 (server error): try again later.\"},\"request_id\":\"e58716494a0c2a2cffee02a0e80a2571\"}\n\n\r\n"
    log request end=engine_failed reason=first_token limit=upstream-first-token-timeout
    close C
    close 1d
    log upstream_failed then=error_event
    to D: "fc\r\nevent: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"The replica was silent for too long (upstream-first-token-timeout): its answer is cut. Provider returned error 503 (server error): try again later.\",\"param\":null,\"sequence_number\":1}\n\n\r\n"
    log request end=engine_failed reason=first_token limit=upstream-first-token-timeout
    close D
    close 1e
    log upstream_failed then=error_event
    to E: "cb\r\ndata: {\"error\":{\"message\":\"No replica answered (1 tried; upstream-first-token-timeout). Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"code\":503,\"retryable\":true}}\n\n\r\n"
    log request end=engine_failed reason=first_token limit=upstream-first-token-timeout
    close E
    release A at 1
    release B at 1
    release C at 1
    release D at 1
    release E at 1
# The time of the whole request (request-timeout): tokens come all the while, and are too many.
F connects
F posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1f
    book F at 1
G connects
G posts /v1/messages {"model":"m","stream":true,"messages":[]}
    connect 1g
    book G at 1
H connects
H posts /v1/responses {"model":"m","stream":true,"input":"x"}
    connect 1h
    book H at 1
I connects
I posts /generate {"text":"x","stream":true}
    connect 1i
    book I at 1
1f accepts
    to 1f: POST /v1/chat/completions HTTP/1.1; Content-Length: 81 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1g accepts
    to 1g: POST /v1/messages HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1h accepts
    to 1h: POST /v1/responses HTTP/1.1; Content-Length: 39 "{\"model\":\"m\",\"stream\":true,\"input\":\"x\"}"
1i accepts
    to 1i: POST /generate HTTP/1.1; Content-Length: 26 "{\"text\":\"x\",\"stream\":true}"
1f streams
1g streams
1h streams
1i streams
1f says "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"
    to F: HTTP/1.1 200 OK; Transfer-Encoding: chunked "30\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\r\n"
1g says "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"hi\"}}\n\n"
    to G: HTTP/1.1 200 OK; Transfer-Encoding: chunked "57\r\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"hi\"}}\n\n\r\n"
1h says "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"hi\",\"sequence_number\":1}\n\n"
    to H: HTTP/1.1 200 OK; Transfer-Encoding: chunked "70\r\nevent: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"hi\",\"sequence_number\":1}\n\n\r\n"
1i says "data: {\"text\":\"hi\"}\n\n"
    to I: HTTP/1.1 200 OK; Transfer-Encoding: chunked "15\r\ndata: {\"text\":\"hi\"}\n\n\r\n"
wait 30000
    to F: "e5\r\ndata: {\"error\":{\"message\":\"The request was not answered in the time that it has (request-timeout): its answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":503}}\n\n\r\n"
    close 1f
    log request end=request_timeout reason=request_timeout limit=request-timeout
    close F
    to G: "11d\r\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"The request was not answered in the time that it has (request-timeout): its answer is cut. Provider returned error 503 (server error): try again later.\"},\"request_id\":\"3cbccbc6942af3f480e022e1cdb65cf2\"}\n\n\r\n"
    close 1g
    log request end=request_timeout reason=request_timeout limit=request-timeout
    close G
    to H: "100\r\nevent: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"The request was not answered in the time that it has (request-timeout): its answer is cut. Provider returned error 503 (server error): try again later.\",\"param\":null,\"sequence_number\":2}\n\n\r\n"
    close 1h
    log request end=request_timeout reason=request_timeout limit=request-timeout
    close H
    to I: "e9\r\ndata: {\"error\":{\"message\":\"The request was not answered in the time that it has (request-timeout): its answer is cut. Provider returned error 503 (server error): try again later.\",\"type\":\"server_error\",\"code\":503,\"retryable\":true}}\n\n\r\n"
    close 1i
    log request end=request_timeout reason=request_timeout limit=request-timeout
    close I
    release F at 1
    release G at 1
    release H at 1
    release I at 1
counters
    requests 9, 2xx 9, cut: engine 5, cut: late 4, upstream time-outs 5
