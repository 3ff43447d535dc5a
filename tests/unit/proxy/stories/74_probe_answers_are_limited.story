# A probe's answer beyond 4 MiB is not read. It is counted and logged once.
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
1a sends "HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n"
1a sends "0123456789"*500000
    close 1a
    log replica_probe_too_large
wait 50
    connect 1b
1b accepts
    to 1b: GET /metrics HTTP/1.1
1b sends "HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n"
1b sends "0123456789"*500000
    close 1b
    log replica_probe_too_large
wait 1000
    connect 1c
1c accepts
    to 1c: GET /metrics HTTP/1.1
1c sends "HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n"
1c sends "0123456789"*500000
    close 1c
counters
    probes too large 3
