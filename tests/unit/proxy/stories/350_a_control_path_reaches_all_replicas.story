# A control path goes to all replicas at once, and its answer has a row for each. One replica
# refuses its connection, one answers with an error. The client's choice of replicas is not
# forwarded.
set engine-control-paths all
replicas 3
A connects
A sends "POST /sleep?level=1&tags=x HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer k\r\nX-Other: y\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    connect 1a
    connect 2a
    connect 3a
1a accepts
    to 1a: POST /sleep?level=1&tags=x HTTP/1.1; authorization: Bearer k; Content-Length: 2 "{}"
2a refuses
    close 2a
3a accepts
    to 3a: POST /sleep?level=1&tags=x HTTP/1.1; authorization: Bearer k; Content-Length: 2 "{}"
3a answers 500 broken
    close 3a
1a answers 200 {"ok":true}
    close 1a
    log engine_control replicas=3
    to A: HTTP/1.1 502 Bad Gateway; Content-Length: 232 "{\"status\":502,\"replicas\":[{\"replica\":\"10.0.0.2:8000\",\"status\":502,\"error\":\"its port refuses connections\"},{\"replica\":\"10.0.0.3:8000\",\"status\":500,\"answer\":\"broken\"},{\"replica\":\"10.0.0.1:8000\",\"status\":200,\"answer\":\"{\x5c\"ok\x5c\":true}\"}]}"
    log request
# Nobody is of that name; HEAD says nothing of rows.
A gets /is_sleeping?replica=10.0.0.9:8000
    to A: HTTP/1.1 404 Not Found; Content-Length: 112 "{\"error\":{\"message\":\"There is no replica `10.0.0.9:8000`.\",\"type\":\"NotFoundError\",\"param\":\"replica\",\"code\":404}}"
A gets /is_sleeping?model=none
    to A: HTTP/1.1 404 Not Found; Content-Length: 108 "{\"error\":{\"message\":\"No replica lists the model `none`.\",\"type\":\"NotFoundError\",\"param\":\"model\",\"code\":404}}"
# A name that is empty, as a script's unset variable makes it, is nobody's.
A gets /is_sleeping?replica=
    to A: HTTP/1.1 400 Bad Request; Content-Length: 164 "{\"error\":{\"message\":\"Name one replica (?replica=HOST:PORT) or one model (?model=NAME), or neither, for all.\",\"type\":\"BadRequestError\",\"param\":\"replica\",\"code\":400}}"
A gets /is_sleeping?model
    to A: HTTP/1.1 400 Bad Request; Content-Length: 164 "{\"error\":{\"message\":\"Name one replica (?replica=HOST:PORT) or one model (?model=NAME), or neither, for all.\",\"type\":\"BadRequestError\",\"param\":\"replica\",\"code\":400}}"
A gets /is_sleeping?replica=10.0.0.1:8000&replica=10.0.0.2:8000
    to A: HTTP/1.1 400 Bad Request; Content-Length: 164 "{\"error\":{\"message\":\"Name one replica (?replica=HOST:PORT) or one model (?model=NAME), or neither, for all.\",\"type\":\"BadRequestError\",\"param\":\"replica\",\"code\":400}}"
A sends "HEAD /is_sleeping HTTP/1.1\r\nHost: g\r\n\r\n"
    to A: HTTP/1.1 405 Method Not Allowed; Content-Length: 128; allow: GET, POST, PUT, DELETE, PATCH
# A client that leaves hears nothing, and those that were asked are let go.
B connects
B posts /wake_up {}
    connect 1b
    connect 2b
    connect 3b
B breaks
    close B
    close 1b
    close 2b
    close 3b
    log request end=client_gone
# One that takes too long: ten minutes, as weights are loaded.
C connects
C sends "POST /wake_up?replica=10.0.0.1:8000 HTTP/1.1\r\nHost: g\r\nContent-Length: 0\r\n\r\n"
    connect 1c
1c accepts
    to 1c: POST /wake_up HTTP/1.1; Content-Length: 0
wait 599000
    close A
wait 2000
    close 1c
    log engine_control replicas=1
    to C: HTTP/1.1 504 Gateway Timeout; Content-Length: 104 "{\"status\":504,\"replicas\":[{\"replica\":\"10.0.0.1:8000\",\"status\":504,\"error\":\"the time limit has passed\"}]}"
    log request
