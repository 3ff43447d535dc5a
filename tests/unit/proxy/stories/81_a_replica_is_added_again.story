# An operator may add a replica that is already configured: it is probed once. If it is removed, the
# probe ends.
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
