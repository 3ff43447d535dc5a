# The router does not read a multipart body; it only looks for the model near both ends. Engines
# with unknown models are asked too.
replicas 1

A connects
A sends "POST /v1/audio/transcriptions HTTP/1.1\r\nHost: g\r\nContent-Type: multipart/form-data; boundary=B\r\nContent-Length: 69\r\n\r\n--B\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper\r\n--B--\r\n"
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/audio/transcriptions HTTP/1.1; Content-Length: 69 "--B\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper\r\n--B--\r\n"
1a answers 404 {"error":{"message":"The model `whisper` does not exist.","param":"model"}}
    to A: HTTP/1.1 404 X; Content-Length: 75 "{\"error\":{\"message\":\"The model `whisper` does not exist.\",\"param\":\"model\"}}"
    log request
    release A at 1
