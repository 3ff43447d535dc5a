# A key is charged what the engine reports, on every path. A stream that its client leaves is
# charged by its events or text; an answer without streaming, by its limit or by its duration.
replicas 1
client k gv-k
client l gv-l tokens-per-minute=100000
client f gv-f in-flight=2

A connects
A sends "POST /v1/chat/completions/batch HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-k\r\nAccept-Encoding: gzip\r\nContent-Length: 27\r\n\r\n{\"model\":\"m\",\"messages\":[]}"
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions/batch HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
1a answers 200 {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5000}}
    to A: HTTP/1.1 200 X; Content-Length: 68 "{\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5000}}"
    release A at 1
tokens
    k: prompt 10, completion 5000
    l: prompt 0, completion 0
    f: prompt 0, completion 0
A sends "POST /invocations HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-k\r\nContent-Length: 27\r\n\r\n{\"model\":\"m\",\"messages\":[]}"
    to 1a: POST /invocations HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
    book A at 1
1a streams
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked
1a says "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
    to A: "2f\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n\r\n"
1a says "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5000}}\n\n"
    to A: "4c\r\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5000}}\n\n\r\n"
1a says "data: [DONE]\n\n"
    to A: "e\r\ndata: [DONE]\n\n\r\n"
1a is done
    to A: "0\r\n\r\n"
    release A at 1
tokens
    k: prompt 20, completion 10000
    l: prompt 0, completion 0
    f: prompt 0, completion 0
A sends "POST /api/chat HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-k\r\nContent-Length: 27\r\n\r\n{\"model\":\"m\",\"messages\":[]}"
    to 1a: POST /api/chat HTTP/1.1; Content-Length: 27 "{\"model\":\"m\",\"messages\":[]}"
    book A at 1
1a sends "HTTP/1.1 200 X\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
    to A: HTTP/1.1 200 X; Transfer-Encoding: chunked
1a says "{\"message\":{\"content\":\"a\"},\"done\":false}\n"
    to A: "29\r\n{\"message\":{\"content\":\"a\"},\"done\":false}\n\r\n"
1a says "{\"message\":{\"content\":\"\"},\"done\":true,\"prompt_eval_count\":10,\"eval_count\":5000}\n"
    to A: "50\r\n{\"message\":{\"content\":\"\"},\"done\":true,\"prompt_eval_count\":10,\"eval_count\":5000}\n\r\n"
1a is done
    to A: "0\r\n\r\n"
    release A at 1
tokens
    k: prompt 30, completion 15000
    l: prompt 0, completion 0
    f: prompt 0, completion 0
A sends "POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-k\r\nContent-Length: 41\r\n\r\n{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
    book A at 1
1a streams
1a says "data: {\"choices\":[{\"delta\":{\"content\":\"eight by\"}}]}\n\n"*10
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "21c\r\ndata: {\"choices\":[{... 547 bytes"
A breaks
    close A
    close 1a
    log request end=client_gone
    release A at 1
tokens
    k: prompt 40, completion 15020
    l: prompt 0, completion 0
    f: prompt 0, completion 0
B connects
B sends "POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-k\r\nContent-Length: 43\r\n\r\n{\"model\":\"m\",\"max_tokens\":30,\"messages\":[]}"
    connect 1b
    book B at 1
1b accepts
    to 1b: POST /v1/chat/completions HTTP/1.1; Content-Length: 43 "{\"model\":\"m\",\"max_tokens\":30,\"messages\":[]}"
wait 2000
B breaks
    close B
    close 1b
    log request end=client_gone
    release B at 1
tokens
    k: prompt 50, completion 15050
    l: prompt 0, completion 0
    f: prompt 0, completion 0
C connects
C sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-k\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"x\"}"
    connect 1c
    book C at 1
1c accepts
    to 1c: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
wait 2000
C breaks
    close C
    close 1c
    log request end=client_gone
    release C at 1
tokens
    k: prompt 56, completion 15250
    l: prompt 0, completion 0
    f: prompt 0, completion 0
D connects
D sends "POST /v1/embeddings HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-k\r\nContent-Length: 25\r\n\r\n{\"model\":\"m\",\"input\":\"x\"}"
    connect 1d
    book D at 1
1d accepts
    to 1d: POST /v1/embeddings HTTP/1.1; Content-Length: 25 "{\"model\":\"m\",\"input\":\"x\"}"
wait 2000
D breaks
    close D
    close 1d
    log request end=client_gone
    release D at 1
tokens
    k: prompt 62, completion 15250
    l: prompt 0, completion 0
    f: prompt 0, completion 0
E connects
E sends "POST /v1/messages HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-k\r\nContent-Length: 41\r\n\r\n{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
    connect 1e
    book E at 1
1e accepts
    to 1e: POST /v1/messages HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1e streams
1e says "data: {\"type\":\"message_start\",\"message\":{\"content\":[],\"usage\":{\"input_tokens\":7,\"output_tokens\":0}}}\n\n"
1e says "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"abcd\"}}\n\n"
    to E: HTTP/1.1 200 OK; Transfer-Encoding: chunked "b8\r\ndata: {\"type\":\"message_start\",\"message\":{\"content\":[],\"usage\":{\"input_tokens\":7,\"output_tokens\":0}}}\n\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"abcd\"}}\n\n\r\n"
E breaks
    close E
    close 1e
    log request end=client_gone
    release E at 1
tokens
    k: prompt 69, completion 15251
    l: prompt 0, completion 0
    f: prompt 0, completion 0
F connects
F sends "POST /v1/responses HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-l\r\nContent-Length: 43\r\n\r\n{\"model\":\"m\",\"input\":\"x\",\"background\":true}"
    to F: HTTP/1.1 403 Forbidden; Content-Length: 210; x-grapevine-limit: tokens-per-minute "{\"error\":{\"message\":\"This API key has a limit (tokens-per-minute), so it may not use background responses: the router cannot count their tokens.\",\"type\":\"PermissionDeniedError\",\"param\":\"background\",\"code\":403}}"
    log request
F sends "POST /v1/responses HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-f\r\nContent-Length: 43\r\n\r\n{\"model\":\"m\",\"input\":\"x\",\"background\":\"on\"}"
    to F: HTTP/1.1 403 Forbidden; Content-Length: 202; x-grapevine-limit: in-flight "{\"error\":{\"message\":\"This API key has a limit (in-flight), so it may not use background responses: the router cannot count their tokens.\",\"type\":\"PermissionDeniedError\",\"param\":\"background\",\"code\":403}}"
    log request
F sends "POST /v1/responses HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-f\r\nContent-Length: 7\r\n\r\nno json"
    to F: HTTP/1.1 403 Forbidden; Content-Length: 170 "{\"error\":{\"message\":\"The router could not read the request, so it cannot check whether this API key may send it.\",\"type\":\"PermissionDeniedError\",\"param\":null,\"code\":403}}"
F sends "POST /v1/responses HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-f\r\nContent-Length: 44\r\n\r\n{\"model\":\"m\",\"input\":\"x\",\"background\":false}"
    connect 1f
    book F at 1
1f accepts
    to 1f: POST /v1/responses HTTP/1.1; Content-Length: 44 "{\"model\":\"m\",\"input\":\"x\",\"background\":false}"
1f answers 200 {"id":"resp_1","usage":{"input_tokens":3,"output_tokens":4}}
    to F: HTTP/1.1 200 X; Content-Length: 60 "{\"id\":\"resp_1\",\"usage\":{\"input_tokens\":3,\"output_tokens\":4}}"
    release F at 1
F sends "POST /v1/responses HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-k\r\nContent-Length: 43\r\n\r\n{\"model\":\"m\",\"input\":\"x\",\"background\":true}"
    to 1f: POST /v1/responses HTTP/1.1; Content-Length: 43 "{\"model\":\"m\",\"input\":\"x\",\"background\":true}"
    book F at 1
1f answers 200 {"id":"resp_2","usage":null}
    to F: HTTP/1.1 200 X; Content-Length: 28 "{\"id\":\"resp_2\",\"usage\":null}"
    release F at 1
tokens
    k: prompt 79, completion 15251
    l: prompt 0, completion 0
    f: prompt 3, completion 4
counters
    requests 13, 2xx 7, 4xx 3, refused key's limit 2, invalid: key's response 1, clients gone 5, cut: gone 2, upstream reused 4, not understood 1
