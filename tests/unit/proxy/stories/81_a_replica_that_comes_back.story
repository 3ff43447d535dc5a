# An operator may add what is configured already: it is probed once. Removed, its probe ends.
replicas 1
probes

start
    connect 1a
replica 1 comes
    log replica_added
replica 1 goes
    log replica_removed
    close 1a
1a accepts
wait 100
