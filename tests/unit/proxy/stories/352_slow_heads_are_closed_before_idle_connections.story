# A crowd of slow heads is closed before an idle connection: its client may be far away.
replicas 1
set connections-max 5

A connects from 192.0.2.1
wait 10
B connects from 192.0.2.9
B sends "POST /v1/comp"
C connects from 192.0.2.9
C sends "POST /v1/comp"
D connects from 192.0.2.8
D sends "POST /v1/comp"
E connects from 192.0.2.2
wait 150
F connects from 192.0.2.3
    close B
G connects from 192.0.2.4
    close C
H connects from 192.0.2.5
    close A
I connects from 192.0.2.6
    close E
