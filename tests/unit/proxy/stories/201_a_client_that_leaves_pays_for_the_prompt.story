# A client with a token limit leaves before its answer begins. The engine has processed its prompt,
# so the prompt counts.
replicas 1
client bob gv-bob tokens-per-minute=5

A connects
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\nContent-Length: 64\r\n\r\n{\"model\":\"m\",\"prompt\":\"one two three four five six seven eight\"}"
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 64 "{\"model\":\"m\",\"prompt\":\"one two three four five six seven eight\"}"
A breaks
    close A
    close 1a
    log request end=client_gone
    release A at 1
B connects
B sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"x\"}"
    to B: HTTP/1.1 429 Too Many Requests; Content-Length: 205; retry-after: 66; x-grapevine-limit: tokens-per-minute "{\"error\":{\"message\":\"Rate limit reached for the API key `bob`: tokens-per-minute is 5. Provider returned error 429 (too many requests): try again in 66 s.\",\"type\":\"RateLimitError\",\"param\":null,\"code\":429}}"
    log request
counters
    requests 2, 4xx 1, refused key's limit 1, clients gone 1
