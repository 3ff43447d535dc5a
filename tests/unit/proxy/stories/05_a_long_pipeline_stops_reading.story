# The router buffers at most a head's limit of a pipeline. It then stops reading the connection
# until the answer is written.
replicas 1
set head-bytes-max 1KiB

A connects
A posts /v1/completions {"model":"m","prompt":"1"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"1\"}"
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 2000\r\n\r\n"
A sends "x"*1000
    pause A
A sends "x"*1000
1a answers 200 {"n":1}
    to A: HTTP/1.1 200 X; Content-Length: 7 "{\"n\":1}"
    resume A
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 2000 "xxxxxxxxxxxxxxxxxxxxxxxx... 2000 bytes"
    release A at 1
    book A at 1
1a answers 200 {"n":2}
    to A: HTTP/1.1 200 X; Content-Length: 7 "{\"n\":2}"
    release A at 1
A ends
    close A
