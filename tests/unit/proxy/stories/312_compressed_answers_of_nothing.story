# A Content-Encoding may stand over nothing: of a 204, of a length of 0, of a body of no bytes, of the answer to a HEAD.
replicas 1

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
1a accepts
1a sends "HTTP/1.1 204 No Content\r\nContent-Encoding: gzip\r\n\r\n"
A posts /v1/completions {"model":"m","prompt":"x"}
1a sends "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n"
A posts /v1/completions {"model":"m","prompt":"x"}
1a sends "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: zstd\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
A sends "HEAD /v1/completions HTTP/1.1\r\nHost: g\r\n\r\n"
A sends "HEAD /version HTTP/1.1\r\nHost: g\r\n\r\n"
1a sends "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\nContent-Length: 20\r\n\r\n"
counters
outcomes
