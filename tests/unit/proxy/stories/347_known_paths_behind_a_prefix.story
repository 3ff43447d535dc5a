# Engines behind a root path, reached as other paths. Owners of stored responses, tokens and
# background are checked there too. The search for a response uses the same root.
set other-paths pass
replicas 2
client alice gv-alice
client bob gv-bob tokens-per-minute=100
client carl gv-carl models=m

A connects
A sends "POST /api/v1/responses HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-alice\r\nContent-Length: 25\r\n\r\n{\"model\":\"m\",\"input\":\"x\"}"
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /api/v1/responses HTTP/1.1; Content-Length: 25 "{\"model\":\"m\",\"input\":\"x\"}"
1a answers 200 {"id":"resp_1","object":"response","usage":{"input_tokens":3,"output_tokens":1}}
    to A: HTTP/1.1 200 X; Content-Length: 80 "{\"id\":\"resp_1\",\"object\":\"response\",\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}"
    release A at 1
A sends "GET /api/v1/responses/resp_1 HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-alice\r\n\r\n"
    to 1a: GET /api/v1/responses/resp_1 HTTP/1.1
    book A at 1
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
B connects
B sends "GET /api/v1/responses/resp_1 HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\n\r\n"
    to B: HTTP/1.1 404 Not Found; Content-Length: 116 "{\"error\":{\"message\":\"Response with id 'resp_1' not found.\",\"type\":\"NotFoundError\",\"param\":\"response_id\",\"code\":404}}"
B sends "DELETE /other/V1/responses/resp_1/ HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\n\r\n"
    to B: HTTP/1.1 404 Not Found; Content-Length: 116 "{\"error\":{\"message\":\"Response with id 'resp_1' not found.\",\"type\":\"NotFoundError\",\"param\":\"response_id\",\"code\":404}}"
B sends "POST /v1/responses/resp_1/of_later HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\nContent-Length: 2\r\n\r\n{}"
    to B: HTTP/1.1 404 Not Found; Content-Length: 116; Connection: close "{\"error\":{\"message\":\"Response with id 'resp_1' not found.\",\"type\":\"NotFoundError\",\"param\":\"response_id\",\"code\":404}}"
    finish B
C connects
C sends "POST /api/v1/responses HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\nContent-Length: 57\r\n\r\n{\"model\":\"m\",\"input\":\"x\",\"previous_response_id\":\"resp_1\"}"
    to C: HTTP/1.1 404 Not Found; Content-Length: 125 "{\"error\":{\"message\":\"Response with id 'resp_1' not found.\",\"type\":\"NotFoundError\",\"param\":\"previous_response_id\",\"code\":404}}"
C sends "POST /api/v1/responses HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\nContent-Length: 43\r\n\r\n{\"model\":\"m\",\"input\":\"x\",\"background\":true}"
    to C: HTTP/1.1 403 Forbidden; Content-Length: 210; x-grapevine-limit: tokens-per-minute "{\"error\":{\"message\":\"This API key has a limit (tokens-per-minute), so it may not use background responses: the router cannot count their tokens.\",\"type\":\"PermissionDeniedError\",\"param\":\"background\",\"code\":403}}"
    log request
C sends "GET /api/v1/videos HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\n\r\n"
    to C: HTTP/1.1 403 Forbidden; Content-Length: 149 "{\"error\":{\"message\":\"The list of videos holds those of other API keys: ask for yours by id.\",\"type\":\"PermissionDeniedError\",\"param\":null,\"code\":403}}"
# What is used there counts.
C sends "POST /api/v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\nContent-Length: 27\r\n\r\n{\"model\":\"m\",\"messages\":[]}"
    to 1a: POST /api/v1/chat/completions HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
    book C at 1
1a answers 200 {"choices":[],"usage":{"prompt_tokens":150,"completion_tokens":10}}
    to C: HTTP/1.1 200 X; Content-Length: 67 "{\"choices\":[],\"usage\":{\"prompt_tokens\":150,\"completion_tokens\":10}}"
    release C at 1
C sends "POST /api/v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\nContent-Length: 27\r\n\r\n{\"model\":\"m\",\"messages\":[]}"
    to C: HTTP/1.1 429 Too Many Requests; Content-Length: 207; retry-after: 43; x-grapevine-limit: tokens-per-minute "{\"error\":{\"message\":\"Rate limit reached for the API key `bob`: tokens-per-minute is 100. Provider returned error 429 (too many requests): try again in 43 s.\",\"type\":\"RateLimitError\",\"param\":null,\"code\":429}}"
    log request
# Which model an engine will use there cannot be told for sure.
C sends "POST /api/v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-carl\r\nContent-Length: 27\r\n\r\n{\"model\":\"m\",\"messages\":[]}"
    to C: HTTP/1.1 403 Forbidden; Content-Length: 179; x-grapevine-limit: models; Connection: close "{\"error\":{\"message\":\"This API key is for certain models only, and which one a request to this path is for cannot be told.\",\"type\":\"PermissionDeniedError\",\"param\":null,\"code\":403}}"
    finish C
D connects
D sends "POST /x/v1/responses HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-alice\r\nContent-Length: 57\r\n\r\n{\"model\":\"m\",\"input\":\"x\",\"previous_response_id\":\"resp_2\"}"
    connect 2a
    book D at 2
2a accepts
    to 2a: GET /x/v1/responses/resp_2 HTTP/1.1
2a answers 404 {}
    to 1a: GET /x/v1/responses/resp_2 HTTP/1.1
    release D at 2
    book D at 1
1a answers 404 {}
    to 1a: POST /x/v1/responses HTTP/1.1; Content-Length: 57 "{\"model\":\"m\",\"input\":\"x\",\"previous_response_id\":\"resp_2\"}"
    release D at 1
    book D at 1
tokens
    alice: prompt 3, completion 1
    bob: prompt 150, completion 10
    carl: prompt 0, completion 0
