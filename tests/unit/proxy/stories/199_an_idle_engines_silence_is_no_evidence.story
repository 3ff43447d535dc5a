# The engine had no work for 4 s. It breaks a second after the next request: this was no silence of
# a dead core, because no answer was due before.
replicas 2
engines sglang
set policy round_robin

A connects
A posts /v1/completions {"model":"m","prompt":"a"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"a\"}"
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
B connects
B posts /v1/completions {"model":"m","prompt":"b"}
    connect 2a
    book B at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"b\"}"
2a answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 2
wait 3800
C connects
C posts /v1/completions {"model":"m","prompt":[5000]}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 29 "{\"model\":\"m\",\"prompt\":[5000]}"
    book C at 1
wait 1000
    close 2a
1a ends
    close 1a
    log upstream_failed then=moved to=10.0.0.2:8000
    release C at 1
    book C at 2
