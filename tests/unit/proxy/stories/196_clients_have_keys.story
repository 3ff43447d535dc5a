# If clients have keys, a request without a valid key gets 401 in the form of its API, and no engine
# gets it. The client's key is not forwarded: the engines' own key replaces it.
replicas 1
key sk-engines
client alice gv-alice
client bob gv-bob

A connects
A posts /v1/chat/completions {"model":"m","messages":[{"role":"user","content":"hi"}]}
    to A: HTTP/1.1 401 Unauthorized; Content-Length: 156; www-authenticate: Bearer; Connection: close "{\"error\":{\"message\":\"No API key was given. Send yours as Authorization: Bearer KEY, or as x-api-key.\",\"type\":\"AuthenticationError\",\"param\":null,\"code\":401}}"
    finish A
B connects
B sends "POST /v1/messages HTTP/1.1\r\nHost: g\r\nX-Api-Key: gv-eve\r\nContent-Length: 13\r\n\r\n{\"model\":\"m\"}"
    to B: HTTP/1.1 401 Unauthorized; Content-Length: 215; www-authenticate: Bearer; Connection: close "{\"type\":\"error\",\"error\":{\"type\":\"authentication_error\",\"message\":\"This API key is unknown: it is mistyped or revoked. Ask the operator of this router for a new one.\"},\"request_id\":\"6a604477f0713a2517889798c4e59b5d\"}"
    finish B
C connects
C sends "GET /nothing HTTP/1.1\r\nHost: g\r\nAuthorization: Basic gv-alice\r\n\r\n"
    to C: HTTP/1.1 401 Unauthorized; Content-Length: 156; www-authenticate: Bearer "{\"error\":{\"message\":\"No API key was given. Send yours as Authorization: Bearer KEY, or as x-api-key.\",\"type\":\"AuthenticationError\",\"param\":null,\"code\":401}}"
C sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer gv-alice\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"x\"}"
    connect 1a
    book C at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26; Authorization: Bearer sk-engines "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 200 {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}
    to C: HTTP/1.1 200 X; Content-Length: 64 "{\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}"
    release C at 1
C sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nAPI-Key: other\r\nAuthorization: Bearer other\r\nX-Api-Key: gv-bob\r\nConnection: api-key\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"x\"}"
    to C: HTTP/1.1 401 Unauthorized; Content-Length: 175; www-authenticate: Bearer; Connection: close "{\"error\":{\"message\":\"This API key is unknown: it is mistyped or revoked. Ask the operator of this router for a new one.\",\"type\":\"AuthenticationError\",\"param\":null,\"code\":401}}"
    finish C
D connects
D sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nAPI-Key: other\r\nX-Api-Key: gv-bob\r\nConnection: api-key\r\nContent-Length: 26\r\n\r\n{\"model\":\"m\",\"prompt\":\"x\"}"
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26; Authorization: Bearer sk-engines "{\"model\":\"m\",\"prompt\":\"x\"}"
    book D at 1
1a answers 200 {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}
    to D: HTTP/1.1 200 X; Content-Length: 64 "{\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}}"
    release D at 1
counters
    requests 6, 2xx 2, 4xx 4, invalid: client key 4, upstream reused 1
