# The start event of an Anthropic message cannot be repeated, so the router holds it and sends a
# ping. Another replica's start event is then the only one.
replicas 2
set stream-hold 2s
A connects
A posts /v1/messages {"model":"m","stream":true,"max_tokens":9,"messages":[]}
    connect 1a
    book A at 1
1a accepts
    to 1a: POST /v1/messages HTTP/1.1; Content-Length: 56 "{\"model\":\"m\",\"stream\":true,\"max_tokens\":9,\"messages\":[]}"
1a streams
1a says "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"1\"}}\n\n"
wait 2000
    to A: HTTP/1.1 200 OK; Transfer-Encoding: chunked "24\r\nevent: ping\ndata: {\"type\": \"ping\"}\n\n\r\n"
1a breaks
    close 1a
    log upstream_failed then=moved to=10.0.0.2:8000
    release A at 1
    book A at 2
wait 250
    connect 2a
2a accepts
    to 2a: POST /v1/messages HTTP/1.1; Content-Length: 56 "{\"model\":\"m\",\"stream\":true,\"max_tokens\":9,\"messages\":[]}"
2a streams
2a says "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"2\"}}\n\n"
2a says "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\n"
    to A: "b5\r\nevent: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"2\"}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\n\r\n"
2a says "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
    to A: "33\r\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n\r\n"
2a is done
    to A: "0\r\n\r\n"
    release A at 2
B connects
B posts /v1/messages {"model":"m","stream":true,"max_tokens":9,"messages":[]}
    connect 1b
    book B at 1
1b accepts
    to 1b: POST /v1/messages HTTP/1.1; Content-Length: 56 "{\"model\":\"m\",\"stream\":true,\"max_tokens\":9,\"messages\":[]}"
1b streams
1b says "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"3\"}}\n\n"
wait 2000
    to B: HTTP/1.1 200 OK; Transfer-Encoding: chunked "24\r\nevent: ping\ndata: {\"type\": \"ping\"}\n\n\r\n"
1b says "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\n"
    to B: "b5\r\nevent: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"3\"}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"hi\"}}\n\n\r\n"
1b says "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
    to B: "33\r\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n\r\n"
1b is done
    to B: "0\r\n\r\n"
    release B at 1
counters
    requests 2, retries 1, 2xx 2, upstream broken 1
