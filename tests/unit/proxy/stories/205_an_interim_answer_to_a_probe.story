# A 1xx answer before the final one is no answer, for a health check either.
replicas 1
probes
set health-interval 1h

start
    connect 1a
1a accepts
    to 1a: GET /health HTTP/1.1
1a sends "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
counters
    none
