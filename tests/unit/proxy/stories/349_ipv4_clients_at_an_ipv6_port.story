# At a port of [::] IPv4 clients have IPv6 addresses: limits use their IPv4 address.
replicas 1
set connections-per-client-max 1

A connects from 192.0.2.1
B connects from ::ffff:192.0.2.1
    to B: HTTP/1.1 429 Too Many Requests; Content-Length: 173; retry-after: 1; x-grapevine-limit: connections-per-client-max; Connection: close "{\"error\":{\"message\":\"Too many connections of one client. Provider returned error 429 (too many requests): try again later.\",\"type\":\"RateLimitError\",\"param\":null,\"code\":429}}"
    log request
    finish B
B posts /v1/completions {"model":"m","prompt":"b"}
C connects from ::ffff:c000:202
C posts /v1/completions {"model":"m","prompt":"c"}
    connect 1a
    book C at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"c\"}"
1a answers 200 {}
    to C: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release C at 1
D connects from 2001:db8::1
counters
    requests 1, 2xx 1, of one client 1
