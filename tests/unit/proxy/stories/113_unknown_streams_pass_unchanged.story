# Lines that are not events of a known API, and events that are not JSON objects, pass unchanged:
# the router does not know how such a stream ends. A whole JSON answer that is cut stays cut.
replicas 1

A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 71 "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"
1a streams
1a says "ping"
1a is done
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "4\r\nping\r\n0\r\n\r\n"
    release A at 1
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 71 "{\"model\":\"m\",\"stream\":true,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}"
    book A at 1
1a streams
1a says "data: 1\n\n"
1a breaks
    close 1a
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 161 "{\"error\":{\"message\":\"No replica answered (1 tried). Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 1
B connects
B posts /v1/completions {"model":"m","prompt":"x"}
    connect 1b
    book B at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1b sends "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n{\"choice\r\n"
1b sends "0\r\n\r\n"
    log upstream_failed then=error
    to B: HTTP/1.1 502 Bad Gateway; Content-Length: 161 "{\"error\":{\"message\":\"No replica answered (1 tried). Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release B at 1
