# The body of an error shows the blame, compressed or not: a dead core, with the length given in its
# head.
replicas 2

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
1a sends "HTTP/1.1 500 X\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 144\r\n\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x1d\xcd1\x0a\x83@\x10F\xe1\xab\x0cS% b\x93f\xdb`\x91\xda\x13L\xd6?F\xa232\xbb+\x88x\xf7\xc4\xf4\x8f\xef\xed\x0cws\x0e;\xcfHI\x06p\xe0V\x87Qq7\x07A\xa3\x15\xcdp\xf4$JcJ\x055u\x00\xa5,\xf1C\xd9%\x82.\xf2\xb4\x15Wz\x99S~\x83\xdc,S\x94\x92Ps\xc5y[N\xf5q2*S\x07_\xe1\xed\x7f[\xf1\".3\x07-\xd3Tq\xb4\xfeW\xde\x9a\xe68\xbe.\xef\xc1U\x99\x00\x00\x00"
    log upstream_failed then=moved to=10.0.0.2:8000
    release A at 1
    book A at 2
wait 250
    connect 2a
2a accepts
    to 2a: POST /v1/completions HTTP/1.1; Content-Length: 26 "{\"model\":\"m\",\"prompt\":\"x\"}"
2a answers 200 {"choices":[]}
    to A: HTTP/1.1 200 X; Content-Length: 14 "{\"choices\":[]}"
    release A at 2
counters
    requests 1, retries 1, 2xx 1
outcomes
    1: error 1
    2: ok 1
