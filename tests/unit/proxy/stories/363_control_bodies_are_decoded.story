# Engines do not decode bodies, but those of control paths were forwarded to all replicas
# compressed. The router decodes them.
set engine-control-paths all
replicas 2
A connects
A sends "POST /sleep HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 31\r\n\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\x56\xca\x49\x2d\x4b\xcd\x51\xb2\x32\xac\x05\x00\xad\x87\x1d\x9f\x0b\x00\x00\x00"
    connect 1a
    connect 2a
1a accepts
    to 1a: POST /sleep HTTP/1.1; Content-Length: 11 "{\"level\":1}"
1a answers 200 ok
    close 1a
2a accepts
    to 2a: POST /sleep HTTP/1.1; Content-Length: 11 "{\"level\":1}"
2a answers 200 ok
    close 2a
    log engine_control replicas=2
    to A: HTTP/1.1 200 OK; Content-Length: 137 "{\"status\":200,\"replicas\":[{\"replica\":\"10.0.0.1:8000\",\"status\":200,\"answer\":\"ok\"},{\"replica\":\"10.0.0.2:8000\",\"status\":200,\"answer\":\"ok\"}]}"
# The limit is that of the decoded bytes.
A sends "POST /sleep HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 104\r\n\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xed\xc1\x31\x01\x00\x00\x00\xc2\xa0\x2a\xeb\x9f\xd2\x12\x9e\x40\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x6f\x03\x60\xac\x45\x1f\x70\x11\x01\x00"
    to A: HTTP/1.1 413 Content Too Large; Content-Length: 136; Connection: close "{\"error\":{\"message\":\"A body that goes to all replicas has at most 64 KiB.\",\"type\":\"RequestEntityTooLargeError\",\"param\":null,\"code\":413}}"
    log request
    finish A
B connects
B sends "POST /sleep HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\nx"
    to B: HTTP/1.1 415 Unsupported Media Type; Content-Length: 179; Connection: close "{\"error\":{\"message\":\"The router cannot decode the Content-Encoding of this body: send it uncompressed, or as one of gzip, zstd.\",\"type\":\"BadRequestError\",\"param\":null,\"code\":415}}"
    finish B
