# Probes also try all addresses of a name: a replica is unreachable when all are. If an address does
# not accept a connection in time, the next is tried.
replicas 1
names
probes
set health-timeout 1s

start
    look up 1
the name of 1 has 0 addresses
    log replica_unresolved
wait 30000
    log replica_down
    look up 1
the name of 1 has 2 addresses
wait 50
    connect 1a
1a refuses
    close 1a
    connect 1b at address 2
1b refuses
    close 1b
wait 450
    connect 1c
wait 500
    close 1c
    connect 1d at address 2
wait 450
    close 1d
    connect 1e
1d accepts
