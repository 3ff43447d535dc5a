# An operator adds a replica while the machine has no file descriptor left. It is probed through a
# pool of its own, which the router does not own: the shortage is logged under its address, and the
# replica is accepted anyway.
replicas 1
files 0
A connects to the admin port
A sends "POST /replicas?replica=10.0.0.2:8000 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    cannot connect to 2
    log local_shortage
wait 100
    log replica_wish
    to A: HTTP/1.1 200 OK; Content-Length: 88 "{\"ok\":true,\"replica\":\"10.0.0.2:8000\",\"answers\":false,\"why\":\"no room is left, try later\"}"
