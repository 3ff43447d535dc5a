# A proxy in front of the engine may compress answers to probes, though they accept no coding: they
# are decoded, up to the usual 4 MiB. Answers in another coding are no evidence.
replicas 1
probes
set scrape-interval 1s

start
    connect 1a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a sends "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 64\r\n\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xabV\xcaO\xcaJM.Q\xb2R\xca\xc9,.Q\xd2QJI,IT\xb2\x8a\xaeV\xcaL\x01\x0a\xe6\x02E\xe0*r\xf3SRs\x94jck\x01\x1cDp\xd96\x00\x00\x00"
wait 50
    to 1a: GET /metrics HTTP/1.1
1a sends "HTTP/1.1 200 OK\r\nContent-Encoding: zstd\r\nContent-Length: 169\r\n\r\n(\xb5/\xfd\x00P"
1a sends "\x02\x00\x10x"*40
1a sends "\x01\x00\x00"
    close 1a
    log replica_probe_too_large
A connects
A gets /v1/models
    to A: HTTP/1.1 200 OK; Content-Length: 54 "{\"object\":\"list\",\"data\":[{\"id\":\"m\",\"object\":\"model\"}]}"
counters
    requests 1, 2xx 1, probes too large 1
