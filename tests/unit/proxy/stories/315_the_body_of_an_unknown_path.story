# The body of an unknown path names its model if it is an object, whatever its Content-Type. Its
# first byte decides: any other body is streamed. Replica 1 does not serve the model, and replica 2
# is busy.
replicas 2
set other-paths pass

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a sends "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 69\r\n\r\n{\"error\":{\"message\":\"The model `m` does not exist.\",\"param\":\"model\"}}"
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
B connects
B sends "PUT /my/thing HTTP/1.1\r\nHost: g\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 28\r\n\r\n"
B sends "\r\n \t"
B sends "{\"input\":\"\",\"model\""
B sends ":\"m\"}"
    connect 2b
    book B at 2
2b accepts
    to 2b: PUT /my/thing HTTP/1.1; Content-Length: 28 "\r\n \x09{\"input\":\"\",\"model\":\"m\"}"
2b answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 2
B sends "PUT /my/thing HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n{\"model\":\"m\r\n2\r\n\"}\r\n"
B sends "0\r\n\r\n"
    to 2b: PUT /my/thing HTTP/1.1; Content-Length: 13 "{\"model\":\"m\"}"
    book B at 2
2b answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 2
# No object: it goes on at once.
B sends "PUT /my/thing HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n [\"model\""
    to 1a: PUT /my/thing HTTP/1.1; Content-Length: 14 " [\"model\""
    book B at 1
B sends ":\"m\"]"
    to 1a: ":\"m\"]"
1a answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 1
B sends "PUT /my/thing HTTP/1.1\r\nHost: g\r\nContent-Type: multipart/related; boundary=b\r\nContent-Length: 13\r\n\r\n{"
    to 1a: PUT /my/thing HTTP/1.1; Content-Length: 13
    to 1a: "{"
    book B at 1
B sends "\"model\":\"m\"}"
    to 1a: "\"model\":\"m\"}"
1a answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 1
# White space is not waited for without end, and nothing has to follow it.
B sends "PUT /my/thing HTTP/1.1\r\nHost: g\r\nContent-Length: 300013\r\n\r\n"
B sends " "*262144
B sends " "*37856
    to 1a: PUT /my/thing HTTP/1.1; Content-Length: 300013 "                        ... 294912 bytes"
    to 1a: "                        ... 5088 bytes"
    book B at 1
B sends "{\"model\":\"m\"}"
    to 1a: "{\"model\":\"m\"}"
1a answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 1
B sends "PUT /my/thing HTTP/1.1\r\nHost: g\r\nContent-Length: 2\r\n\r\n  "
    to 1a: PUT /my/thing HTTP/1.1; Content-Length: 2 "  "
    book B at 1
1a answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 1
counters
    requests 7, retries 1, 2xx 6, upstream reused 5
