# Only engines known to support the question are asked for usage, and only if the setting allows it.
engines other
replicas 1
wait 1000
A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a answers 200 "{}"
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
