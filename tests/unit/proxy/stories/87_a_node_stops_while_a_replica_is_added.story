# A replica that does not answer yet is being added when the node stops: its question ends, and the
# client that asked is cut, once. (The question was freed, and its client's end wrote into it.)
replicas 2

A connects to the admin port
A sends "POST /replicas?replica=10.0.0.3:8000 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
    connect 3a
wait 400
the node stops
    close 3a
    close A
