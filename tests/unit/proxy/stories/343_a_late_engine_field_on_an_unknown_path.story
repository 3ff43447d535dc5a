# The body of an unknown path is streamed after its first 256 KiB. An engine field is still found,
# however late: the engine never gets a complete body.
replicas 1
set other-paths pass
A connects
A sends "POST /my/thing HTTP/1.1\r\nHost: g\r\nContent-Length: 400035\r\n\r\n{\"a\":\"kv_transfer_params"
A sends "a"*300000
    connect 1a
    pause A
    book A at 1
1a accepts
    to 1a: POST /my/thing HTTP/1.1; Content-Length: 400035 "{\"a\":\"kv_transfer_params... 282624 bytes"
    resume A
    to 1a: "aaaaaaaaaaaaaaaaaaaaaaaa... 17400 bytes"
A sends "a"*99983
    to 1a: "aaaaaaaaaaaaaaaaaaaaaaaa... 48136 bytes"
    to 1a: "aaaaaaaaaaaaaaaaaaaaaaaa... 51847 bytes"
A sends "\",\"bootstrap_room\":7}"
    to A: HTTP/1.1 400 Bad Request; Content-Length: 200; x-grapevine-limit: engine-fields; Connection: close "{\"error\":{\"message\":\"`bootstrap_room` is a field that engines use among themselves. Clients may not send it: leave it out. (Setting: engine-fields.)\",\"type\":\"BadRequestError\",\"param\":null,\"code\":400}}"
    close 1a
    log request
    finish A
    release A at 1
# It stands in what is held.
B connects
B sends "POST /my/thing HTTP/1.1\r\nHost: g\r\nContent-Length: 400035\r\n\r\n{\"bootstrap_room\":7,\"a\":\""
B sends "a"*300000
    to B: HTTP/1.1 400 Bad Request; Content-Length: 212; x-grapevine-limit: engine-fields; Connection: close "{\"error\":{\"message\":\"`bootstrap_room` is a field that engines use among themselves. Clients may not send it: leave it out. (Setting: engine-fields.)\",\"type\":\"BadRequestError\",\"param\":\"bootstrap_room\",\"code\":400}}"
    log request
    finish B
C connects
C posts /my/thing {"kv_transfer_params":{}}
    to C: HTTP/1.1 400 Bad Request; Content-Length: 220; x-grapevine-limit: engine-fields "{\"error\":{\"message\":\"`kv_transfer_params` is a field that engines use among themselves. Clients may not send it: leave it out. (Setting: engine-fields.)\",\"type\":\"BadRequestError\",\"param\":\"kv_transfer_params\",\"code\":400}}"
    log request
counters
    requests 3, 4xx 3, refused engine field 3
