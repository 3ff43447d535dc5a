# Bodies that have stalled are closed too, but not within a second, and none that is alone.
replicas 1
set connections-max 4

A connects from 192.0.2.1
B connects from 192.0.2.9
B sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 90\r\n\r\n{\"model\":\"m\""
C connects from 192.0.2.8
C sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nContent-Length: 90\r\n\r\n{\"model\":\"m\""
D connects from 192.0.2.2
wait 500
E connects from 192.0.2.3
    close A
wait 600
F connects from 192.0.2.4
    close B
    log request end=client_slow reason=connections limit=connections-max
G connects from 192.0.2.5
    close D
