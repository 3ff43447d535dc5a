# A probe without a file descriptor shows nothing about the replica: the replica stays up, and is
# probed again when due.
replicas 1
probes
set health-failures 1
set scrape-interval 1h

start
    connect 1a
1a accepts
    to 1a: GET /health HTTP/1.1
1a answers 200 {}
    log replica_up
    to 1a: GET /v1/models HTTP/1.1
1a answers 404 {}
    log replica_models_unknown
wait 50
    to 1a: GET /metrics HTTP/1.1
1a answers 200 {}
    log replica_metrics_unknown
1a ends
    close 1a
files 0
wait 2000
    cannot connect to 1
    log local_shortage
files 9
wait 1000
A connects
A posts /v1/completions {"model":"m","prompt":"x"}
    connect 1b
    book A at 1
