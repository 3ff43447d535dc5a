# A key with limits on requests and tokens a minute, and on concurrent requests. Beyond them the
# client gets 429 with Retry-After, in the form of its API, and no engine gets the request.
replicas 1
client alice gv-alice requests-per-minute=3
client bob gv-bob tokens-per-minute=100
client carol gv-carol in-flight=1

A connects
A sends "GET /version HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-alice\r\n\r\n"
    connect 1a
    book A at 1
1a accepts
    to 1a: GET /version HTTP/1.1
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
A sends "GET /version HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-alice\r\n\r\n"
    to 1a: GET /version HTTP/1.1
    book A at 1
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
A sends "GET /version HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-alice\r\n\r\n"
    to 1a: GET /version HTTP/1.1
    book A at 1
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
A sends "GET /version HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-alice\r\n\r\n"
    to A: HTTP/1.1 429 Too Many Requests; Content-Length: 209; retry-after: 41; x-grapevine-limit: requests-per-minute "{\"error\":{\"message\":\"Rate limit reached for the API key `alice`: requests-per-minute is 3. Provider returned error 429 (too many requests): try again in 41 s.\",\"type\":\"RateLimitError\",\"param\":null,\"code\":429}}"
    log request
A sends "POST /v1/messages HTTP/1.1\r\nHost: g\r\nX-Api-Key: gv-alice\r\nContent-Length: 0\r\n\r\n"
    to A: HTTP/1.1 429 Too Many Requests; Content-Length: 250; retry-after: 41; x-grapevine-limit: requests-per-minute "{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"Rate limit reached for the API key `alice`: requests-per-minute is 3. Provider returned error 429 (too many requests): try again in 41 s.\"},\"request_id\":\"5f75cc2171fd810b35d3b2339aeb5c57\"}"
    log request
wait 60000
    close 1a
A connects
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"x\"}"
    connect 1b
    book A at 1
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1b answers 200 {"choices":[],"usage":{"prompt_tokens":90,"completion_tokens":9}}
    to A: HTTP/1.1 200 X; Content-Length: 65 "{\"choices\":[],\"usage\":{\"prompt_tokens\":90,\"completion_tokens\":9}}"
    release A at 1
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"x\"}"
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
    book A at 1
1b answers 200 {"choices":[],"usage":{"prompt_tokens":90,"completion_tokens":9}}
    to A: HTTP/1.1 200 X; Content-Length: 65 "{\"choices\":[],\"usage\":{\"prompt_tokens\":90,\"completion_tokens\":9}}"
    release A at 1
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"x\"}"
    to A: HTTP/1.1 429 Too Many Requests; Content-Length: 207; retry-after: 51; x-grapevine-limit: tokens-per-minute "{\"error\":{\"message\":\"Rate limit reached for the API key `bob`: tokens-per-minute is 100. Provider returned error 429 (too many requests): try again in 51 s.\",\"type\":\"RateLimitError\",\"param\":null,\"code\":429}}"
    log request
B connects
B sends "GET /version HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-carol\r\n\r\n"
    to 1b: GET /version HTTP/1.1
    book B at 1
C connects
C sends "GET /version HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-carol\r\n\r\n"
    to C: HTTP/1.1 429 Too Many Requests; Content-Length: 198; retry-after: 1; x-grapevine-limit: in-flight "{\"error\":{\"message\":\"Rate limit reached for the API key `carol`: in-flight is 1. Provider returned error 429 (too many requests): try again in 1 s.\",\"type\":\"RateLimitError\",\"param\":null,\"code\":429}}"
    log request
B breaks
    close B
    close 1b
    log request end=client_gone
    release B at 1
C sends "GET /version HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-carol\r\n\r\n"
    connect 1c
    book C at 1
1c accepts
    to 1c: GET /version HTTP/1.1
1c answers 200 {}
    to C: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release C at 1
counters
    requests 11, 2xx 6, 4xx 4, refused key's limit 4, clients gone 1, upstream reused 4
