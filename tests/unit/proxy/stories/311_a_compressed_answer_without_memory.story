# What the decoder of an answer needs counts towards buffered-bytes-max: a window of 8 MiB here. Where that is not there, the
# client hears it, if it has nothing yet, and the replica is not to blame.
replicas 1
set buffered-bytes-max 8MiB

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
1a accepts
1a sends "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: zstd\r\nTransfer-Encoding: chunked\r\n\r\n"
1a says "(\xb5/\xfd\x00h"
1a says "\x0a\x00\x00x"
# One with a small window is decoded.
A posts /v1/completions {"model":"m","prompt":"y"}
1b accepts
1b sends "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: zstd\r\nTransfer-Encoding: chunked\r\n\r\n"
1b says "(\xb5/\xfd\x00P\x11\x00\x00{}"
1b is done
# One that grows beyond it when the client has its beginning is cut.
A posts /v1/completions {"model":"m","prompt":"z"}
1b sends "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: zstd\r\nTransfer-Encoding: chunked\r\n\r\n"
1b says "(\xb5/\xfd\x00P\x11\x00\x00{}"
1b says "(\xb5/\xfd\x00h\x11\x00\x00{}"
counters
outcomes
