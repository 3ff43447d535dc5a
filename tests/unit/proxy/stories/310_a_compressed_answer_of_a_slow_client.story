# A few compressed bytes may stand for many. What is decoded of them waits for a slow client like any answer, up to 256 KiB;
# the rest of them waits compressed, and the replica is not read until the client has taken what came out.
replicas 1
set upstream-idle-timeout 3s

A connects
A posts /v1/completions {"model":"m","prompt":"x"}
1a accepts
A takes nothing
1a sends "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: zstd\r\nContent-Length: 25\r\n\r\n(\xb5/\xfd\x00P\x02\x00\x10x\x02\x00\x10y\x02\x00\x10z\x02\x00\x10w\x01\x00\x00"
wait 10000
A takes all
counters
