# An engine compresses an answer although nothing was accepted. If the router can decode it, it
# removes the usage. If not, the same replica is asked again without the usage question, and from
# then on always so.
engines sglang
replicas 1
wait 1000
A connects
A posts /v1/completions {"model":"m","stream":true,"prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 80 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"prompt\":\"x\"}"
1a sends "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
1a says "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03JI,I\xb4R\xa8VJ\xce\xc8\xcfLN-V\xb2\x8a\xaeV*I\xad(Q\xb2R\xaaP\xaa\x8d\xad\xe5\xe2\x02\x00\x00\x00\xff\xff"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "22\r\ndata: {\"choices\":[{\"text\":\"x\"}]}\n\n\r\n"
1a says "K\xc1P\x11\xab\xa3TZ\x9c\x98\x9e\xaadU\xadTP\x94\x9f[P\x12_\x92\x9f\x9d\x9a\x07\x94\xb3\xd4QJ\x06\x0a\xe4\xa4\x96d\xe6\xe7\xc1E\x0dk\xe1\xe6D\xbb\xf8\xfb\xb9\xc6rq\x01\x003x\x97\xb2x\x00\x00\x00"
    to A: "e\r\ndata: [DONE]\n\n\r\n"
1a is done
    to A: "0\r\n\r\n"
    release A at 1
A posts /v1/completions {"model":"m","stream":true,"prompt":"y"}
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 80 "{\"stream_options\":{\"include_usage\":true},\"model\":\"m\",\"stream\":true,\"prompt\":\"y\"}"
    book A at 1
1a sends "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: br\r\nTransfer-Encoding: chunked\r\n\r\n"
    log answer_coding_unread
    close 1a
    connect 1b
1b accepts
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 80 "{                                        \"model\":\"m\",\"stream\":true,\"prompt\":\"y\"}"
1b sends "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: br\r\nTransfer-Encoding: chunked\r\n\r\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked
1b says "packed"
    to A: "6\r\npacked\r\n"
1b is done
    to A: "0\r\n\r\n"
    release A at 1
A posts /v1/completions {"model":"m","stream":true,"prompt":"z"}
    to 1b: POST /v1/completions HTTP/1.1; Content-Length: 80 "{                                        \"model\":\"m\",\"stream\":true,\"prompt\":\"z\"}"
    book A at 1
1b sends "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
1b says "no gzip at all"
    close 1b
    log upstream_failed then=error
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 161 "{\"error\":{\"message\":\"No replica answered (1 tried). Provider returned error 502 (server error): try again later.\",\"type\":\"server_error\",\"param\":null,\"code\":502}}"
    log request
    release A at 1
counters
    requests 3, 2xx 2, 5xx 1, refused bad gateway 1, upstream broken 1, upstream reused 2
outcomes
    1: ok 2 broken 1
