# A kept connection ends in the middle of the head of a check's answer. The engine was answering, so
# this is a failed check, and not repeated like one on a closed connection.
replicas 1
probes
set health-interval 2s
set health-failures 1
set scrape-interval 1h

start
    connect 1a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 ok
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
    log replica_models_unknown
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 404 {}
    log replica_metrics_unknown
wait 2000
    to 1a: GET /health HTTP/1.1
1a sends "HTTP/1.1 200 O"
1a ends
    close 1a
    log replica_down
