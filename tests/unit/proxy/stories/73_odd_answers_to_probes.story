# Probes accept answers in chunks, until the connection closes, or in pieces. Anything else is a
# failure, and the next probe uses a fresh connection.
replicas 1
probes
set health-failures 1
set scrape-interval 1h

start
    connect 1a
1a accepts
    to 1a: GET /health HTTP/1.1
1a sends "HTTP/1.1 200 OK\r\n\r\nfine"
1a ends
    close 1a
    log replica_up
    connect 1b
1b accepts
    to 1b: GET /v1/models HTTP/1.1
1b sends "HTTP/1.1 200 OK\r\nTransfer-Enc"
1b sends "oding: chunked\r\n\r\n10\r\n{\"object\":\"list\""
1b sends "\r\nb\r\n,\"data\":[]}\r\n0\r\n\r\nmore"
    close 1b
wait 50
    connect 1c
1c accepts
    to 1c: GET /metrics HTTP/1.1
1c sends "HTTP/1.1 200 OK\r\nContent-Length: 28\r\n\r\n"
1c sends "vllm:num_requests_running 0\n"
1c sends "and more"
    close 1c
wait 2000
    connect 1d
1d accepts
    to 1d: GET /health HTTP/1.1
1d sends "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
    close 1d
    log replica_down
wait 50
    connect 1e
1e accepts
    to 1e: GET /health HTTP/1.1
1e sends "nonsense\r\n\r\n"
    close 1e
wait 500
    connect 1f
the next connect is refused
wait 500
    close 1f
    cannot connect to 1
wait 500
    connect 1g
