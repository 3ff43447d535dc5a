# SGLang reports a full queue as a 200 with an error event. The client has received nothing, so the
# router asks another replica. If all are full, the client gets an ordinary error with the right
# status.
replicas 2
A connects
A posts /v1/chat/completions {"model":"m","stream":true,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
1a streams
1a says "data: {\"error\": {\"object\": \"error\", \"message\": \"The request queue is full.\", \"type\": \"SERVICE_UNAVAILABLE\", \"param\": null, \"code\": 503}}\n\n"
    log upstream_failed then=moved to=10.0.0.2:8000
    close 1a
    connect 2a
    release A at 1
    book A at 2
2a accepts
    to 2a: POST /v1/chat/completions HTTP/1.1; Content-Length: 41 "{\"model\":\"m\",\"stream\":true,\"messages\":[]}"
2a streams
2a says "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "30\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\n\r\n"
2a says "data: [DONE]\n\n"
    to A: "e\r\ndata: [DONE]\n\n\r\n"
2a is done
    to A: "0\r\n\r\n"
    release A at 2
A posts /generate {"text":"x","stream":true}
    to 2a: POST /generate HTTP/1.1; Content-Length: 26 "{\"text\":\"x\",\"stream\":true}"
    book A at 2
2a streams
2a says "data: {\"text\":\"\",\"meta_info\":{\"finish_reason\":{\"type\":\"abort\",\"status_code\":503,\"message\":\"The request queue is full.\"}}}\n\n"
    log upstream_failed then=moved to=10.0.0.1:8000
    close 2a
    connect 1b
    release A at 2
    book A at 1
1b accepts
    to 1b: POST /generate HTTP/1.1; Content-Length: 26 "{\"text\":\"x\",\"stream\":true}"
1b streams
1b says "data: {\"text\":\"\",\"meta_info\":{\"finish_reason\":{\"type\":\"abort\",\"status_code\":503,\"message\":\"The request queue is full.\"}}}\n\n"
    log upstream_failed then=answer
    to A: HTTP/1.1 503 Service Unavailable; Content-Length: 107; retry-after: 1 "{\"error\":{\"message\":\"The request queue is full.\",\"type\":\"ServiceUnavailableError\",\"param\":null,\"code\":503}}"
    close 1b
    log request
    release A at 1
wait 2000
A posts /v1/messages {"model":"m","stream":true,"max_tokens":9,"messages":[]}
    connect 2b
    book A at 2
2b accepts
    to 2b: POST /v1/messages HTTP/1.1; Content-Length: 56 "{\"model\":\"m\",\"stream\":true,\"max_tokens\":9,\"messages\":[]}"
2b streams
2b says "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"1\"}}\n\n"
2b says "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"The request queue is full.\"}}\n\n"
    log upstream_failed then=moved to=10.0.0.1:8000
    close 2b
    connect 1c
    release A at 2
    book A at 1
1c accepts
    to 1c: POST /v1/messages HTTP/1.1; Content-Length: 56 "{\"model\":\"m\",\"stream\":true,\"max_tokens\":9,\"messages\":[]}"
1c streams
1c says "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"2\"}}\n\n"
1c says "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\n"
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "b5\r\nevent: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"2\"}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\n\r\n"
1c says "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
    to A: "33\r\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n\r\n"
1c is done
    to A: "0\r\n\r\n"
    release A at 1
A posts /v1/responses {"model":"m","input":"x"}
    to 1c: POST /v1/responses HTTP/1.1; Content-Length: 25 "{\"model\":\"m\",\"input\":\"x\"}"
    book A at 1
1c answers 400 {"error":{"message":"503: The request queue is full.","type":"invalid_request_error","param":null,"code":400}}
    log upstream_failed then=moved to=10.0.0.2:8000
    connect 2c
    release A at 1
    book A at 2
2c accepts
    to 2c: POST /v1/responses HTTP/1.1; Content-Length: 25 "{\"model\":\"m\",\"input\":\"x\"}"
2c answers 200 {"id":"r9"}
    to A: HTTP/1.1 200 X; Content-Length: 11 "{\"id\":\"r9\"}"
    release A at 2
counters
    requests 4, retries 4, 2xx 3, 5xx 1, refused by an engine 1, upstream reused 2
