# The sent part of a long body is not kept, so the request cannot be repeated: the client gets the
# 408, and may send it again.
replicas 1
set other-paths pass

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a answers 200 {}
    to A: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release A at 1
A sends "PUT /files HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n"
A sends "x"*299999
    to 1a: PUT /files HTTP/1.1; Content-Length: 300000 "xxxxxxxxxxxxxxxxxxxxxxxx... 16384 bytes"
    to 1a: "xxxxxxxxxxxxxxxxxxxxxxxx... 16384 bytes"
    to 1a: "xxxxxxxxxxxxxxxxxxxxxxxx... 65536 bytes"
    to 1a: "xxxxxxxxxxxxxxxxxxxxxxxx... 65536 bytes"
    to 1a: "xxxxxxxxxxxxxxxxxxxxxxxx... 65536 bytes"
    to 1a: "xxxxxxxxxxxxxxxxxxxxxxxx... 65536 bytes"
    to 1a: "xxxxxxxxxxxxxxxxxxxxxxxx... 5087 bytes"
    book A at 1
1a answers 408 {}
    close 1a
    to A: HTTP/1.1 408 X; Content-Length: 2; Connection: close "{}"
    log request
    finish A
    release A at 1
counters
    requests 2, 2xx 1, 4xx 1, upstream reused 1
