# Only the key that made a stored response may use it: other keys get "not found" for reading,
# cancelling, deleting or continuing it. Keys limited to some models get no response of an unknown
# owner.
replicas 1
client alice gv-alice
client bob gv-bob models=m
client carol gv-carol

A connects
A sends "POST /v1/responses HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-alice\r\nContent-Length: 27\r\n\r\n{\"model\":\"big\",\"input\":\"x\"}"
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/responses HTTP/1.1; Content-Length: 27 "{\"model\":\"big\",\"input\":\"x\"}"
1a answers 200 {"id":"resp_1","usage":{"input_tokens":3,"output_tokens":4}}
    to A: HTTP/1.1 200 X; Content-Length: 60 "{\"id\":\"resp_1\",\"usage\":{\"input_tokens\":3,\"output_tokens\":4}}"
    release A at 1
A sends "GET /v1/responses/resp_1 HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-alice\r\n\r\n"
    to 1a: GET /v1/responses/resp_1 HTTP/1.1
    book A at 1
1a answers 200 {"id":"resp_1"}
    to A: HTTP/1.1 200 X; Content-Length: 15 "{\"id\":\"resp_1\"}"
    release A at 1
A sends "POST /v1/responses HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-alice\r\nContent-Length: 59\r\n\r\n{\"model\":\"big\",\"input\":\"x\",\"previous_response_id\":\"resp_1\"}"
    to 1a: POST /v1/responses HTTP/1.1; Content-Length: 59 "{\"model\":\"big\",\"input\":\"x\",\"previous_response_id\":\"resp_1\"}"
    book A at 1
1a answers 200 {"id":"resp_2"}
    to A: HTTP/1.1 200 X; Content-Length: 15 "{\"id\":\"resp_2\"}"
    release A at 1
A sends "GET /v1/responses/resp_1 HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\n\r\n"
    to A: HTTP/1.1 404 Not Found; Content-Length: 116 "{\"error\":{\"message\":\"Response with id 'resp_1' not found.\",\"type\":\"NotFoundError\",\"param\":\"response_id\",\"code\":404}}"
A sends "DELETE /v1/responses/resp_1 HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\n\r\n"
    to A: HTTP/1.1 404 Not Found; Content-Length: 116 "{\"error\":{\"message\":\"Response with id 'resp_1' not found.\",\"type\":\"NotFoundError\",\"param\":\"response_id\",\"code\":404}}"
A sends "POST /v1/responses/resp_1/cancel HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\nContent-Length: 0\r\n\r\n"
    to A: HTTP/1.1 404 Not Found; Content-Length: 116 "{\"error\":{\"message\":\"Response with id 'resp_1' not found.\",\"type\":\"NotFoundError\",\"param\":\"response_id\",\"code\":404}}"
A sends "GET /v1/responses/resp_1/input_items HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\n\r\n"
    to A: HTTP/1.1 404 Not Found; Content-Length: 116 "{\"error\":{\"message\":\"Response with id 'resp_1' not found.\",\"type\":\"NotFoundError\",\"param\":\"response_id\",\"code\":404}}"
A sends "POST /v1/responses HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\nContent-Length: 57\r\n\r\n{\"model\":\"m\",\"input\":\"x\",\"previous_response_id\":\"resp_1\"}"
    to A: HTTP/1.1 404 Not Found; Content-Length: 125 "{\"error\":{\"message\":\"Response with id 'resp_1' not found.\",\"type\":\"NotFoundError\",\"param\":\"previous_response_id\",\"code\":404}}"
A sends "POST /v1/responses HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\nContent-Length: 61\r\n\r\n{\"model\":\"m\",\"input\":\"x\",\"request_id\":\"resp_1\",\"store\":false}"
    to A: HTTP/1.1 404 Not Found; Content-Length: 115 "{\"error\":{\"message\":\"Response with id 'resp_1' not found.\",\"type\":\"NotFoundError\",\"param\":\"request_id\",\"code\":404}}"
A sends "GET /v1/responses/resp_1 HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-carol\r\n\r\n"
    to A: HTTP/1.1 404 Not Found; Content-Length: 116 "{\"error\":{\"message\":\"Response with id 'resp_1' not found.\",\"type\":\"NotFoundError\",\"param\":\"response_id\",\"code\":404}}"
A sends "DELETE /v1/responses/resp_1 HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-carol\r\n\r\n"
    to A: HTTP/1.1 404 Not Found; Content-Length: 116 "{\"error\":{\"message\":\"Response with id 'resp_1' not found.\",\"type\":\"NotFoundError\",\"param\":\"response_id\",\"code\":404}}"
A sends "POST /v1/responses/resp_1/cancel HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-carol\r\nContent-Length: 0\r\n\r\n"
    to A: HTTP/1.1 404 Not Found; Content-Length: 116 "{\"error\":{\"message\":\"Response with id 'resp_1' not found.\",\"type\":\"NotFoundError\",\"param\":\"response_id\",\"code\":404}}"
A sends "GET /v1/responses/resp_1/input_items HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-carol\r\n\r\n"
    to A: HTTP/1.1 404 Not Found; Content-Length: 116 "{\"error\":{\"message\":\"Response with id 'resp_1' not found.\",\"type\":\"NotFoundError\",\"param\":\"response_id\",\"code\":404}}"
A sends "POST /v1/responses HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-carol\r\nContent-Length: 57\r\n\r\n{\"model\":\"m\",\"input\":\"x\",\"previous_response_id\":\"resp_1\"}"
    to A: HTTP/1.1 404 Not Found; Content-Length: 125 "{\"error\":{\"message\":\"Response with id 'resp_1' not found.\",\"type\":\"NotFoundError\",\"param\":\"previous_response_id\",\"code\":404}}"
A sends "POST /v1/responses HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-carol\r\nContent-Length: 61\r\n\r\n{\"model\":\"m\",\"input\":\"x\",\"request_id\":\"resp_1\",\"store\":false}"
    to A: HTTP/1.1 404 Not Found; Content-Length: 115 "{\"error\":{\"message\":\"Response with id 'resp_1' not found.\",\"type\":\"NotFoundError\",\"param\":\"request_id\",\"code\":404}}"
A sends "GET /v1/responses/resp_0 HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\n\r\n"
    to A: HTTP/1.1 404 Not Found; Content-Length: 116 "{\"error\":{\"message\":\"Response with id 'resp_0' not found.\",\"type\":\"NotFoundError\",\"param\":\"response_id\",\"code\":404}}"
A sends "POST /v1/responses HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\nContent-Length: 57\r\n\r\n{\"model\":\"m\",\"input\":\"x\",\"previous_response_id\":\"resp_0\"}"
    to A: HTTP/1.1 404 Not Found; Content-Length: 125 "{\"error\":{\"message\":\"Response with id 'resp_0' not found.\",\"type\":\"NotFoundError\",\"param\":\"previous_response_id\",\"code\":404}}"
A sends "GET /v1/responses/resp_0 HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-carol\r\n\r\n"
    to 1a: GET /v1/responses/resp_0 HTTP/1.1
    book A at 1
1a answers 200 {"id":"resp_0"}
    to A: HTTP/1.1 200 X; Content-Length: 15 "{\"id\":\"resp_0\"}"
    release A at 1
A sends "POST /v1/responses HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\nContent-Length: 61\r\n\r\n{\"model\":\"m\",\"input\":\"x\",\"request_id\":\"resp_0\",\"store\":false}"
    to 1a: POST /v1/responses HTTP/1.1; Content-Length: 61 "{\"model\":\"m\",\"input\":\"x\",\"request_id\":\"resp_0\",\"store\":false}"
    book A at 1
1a answers 200 {"id":"resp_0"}
    to A: HTTP/1.1 200 X; Content-Length: 15 "{\"id\":\"resp_0\"}"
    release A at 1
A sends "GET /v1/responses/resp_0 HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\n\r\n"
    to A: HTTP/1.1 404 Not Found; Content-Length: 116 "{\"error\":{\"message\":\"Response with id 'resp_0' not found.\",\"type\":\"NotFoundError\",\"param\":\"response_id\",\"code\":404}}"
A sends "POST /v1/responses HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-carol\r\nContent-Length: 45\r\n\r\n{\"input\":NaN,\"previous_response_id\":\"resp_1\"}"
    to A: HTTP/1.1 403 Forbidden; Content-Length: 170 "{\"error\":{\"message\":\"The router could not read the request, so it cannot check whether this API key may send it.\",\"type\":\"PermissionDeniedError\",\"param\":null,\"code\":403}}"
A sends "POST /v1/responses HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\nContent-Length: 39\r\n\r\n{\"model\":\"m\",\"input\":\"x\",\"stream\":true}"
    to 1a: POST /v1/responses HTTP/1.1; Content-Length: 39 "{\"model\":\"m\",\"input\":\"x\",\"stream\":true}"
    book A at 1
1a streams
1a says "data: {\"type\":\"response.created\",\"response\":{\"id\":\"resp_3\"}}\n\n"
B connects
B sends "GET /v1/responses/resp_3 HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-carol\r\n\r\n"
    to B: HTTP/1.1 404 Not Found; Content-Length: 116 "{\"error\":{\"message\":\"Response with id 'resp_3' not found.\",\"type\":\"NotFoundError\",\"param\":\"response_id\",\"code\":404}}"
B sends "GET /v1/responses/resp_3 HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-bob\r\n\r\n"
    connect 1b
    book B at 1
1b accepts
    to 1b: GET /v1/responses/resp_3 HTTP/1.1
1b answers 200 {"id":"resp_3"}
    to B: HTTP/1.1 200 X; Content-Length: 15 "{\"id\":\"resp_3\"}"
    release B at 1
A breaks
    close A
    close 1a
    log request end=client_gone
    release A at 1
counters
    requests 24, 2xx 7, 4xx 17, invalid: key's response 17, clients gone 1, upstream reused 5, not understood 1
