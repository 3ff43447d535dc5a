# Compressed bodies are decoded as they arrive and forwarded with their new length, also to another
# replica.
replicas 2
engines vllm

A connects
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 59\r\n\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xabV\xca\xcdOI\xcdQ\xb2R\xcaU\xd2Q*.)JM"
A sends "\xccU\xb2*)*M\xd5Q*(\xca\xcf-(\x01JU(\xd5\x02\x00h\xe8\x22\xc6(\x00\x00\x00"
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"stream\":true,\"prompt\":\"x\"}"
1a answers 503 {}
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 40 "{\"model\":\"m\",\"stream\":true,\"prompt\":\"x\"}"
2a answers 200 {"choices":[{"text":"hi"}]}
    to A: HTTP/1.1 200 X; Content-Length: 27 "{\"choices\":[{\"text\":\"hi\"}]}"
    release A at 2
B connects
B sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\nContent-Encoding: zstd\r\nTransfer-Encoding: chunked\r\n\r\n29\r\n(\xb5/\xfd\x00X\x05\x01\x00\xd0{\x22model\x22:\x22b\x22,\x22prompt\x22:\x22y\x22}\x01\x00\xe0\x04c\r\n0\r\n\r\n"
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 77 "{\"model\":\"b\",\"prompt\":\"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\"}"
    book B at 2
