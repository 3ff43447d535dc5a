# The router stops while it adds a replica that has not answered yet. The probe ends, and the
# operator's client is cut, once. (The probe was freed, and the end of its client wrote into it.)
replicas 2

A connects to the admin port
A sends "POST /replicas?replica=10.0.0.3:8000 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
    connect 3a
wait 400
the node stops
    close 3a
    close A
