# Clients may not send fields for messages between engines: 400, in the form of the API, names the
# field and the setting. No engine gets the request, and the connection stays open. null counts as
# absent.
replicas 1
A connects
A posts /v1/chat/completions {"model":"m","messages":[],"kv_transfer_params":{"do_remote_prefill":true,"remote_host":"evil"}}
    to A: HTTP/1.1 400 Bad Request; Content-Length: 220; x-grapevine-limit: engine-fields "{\"error\":{\"message\":\"`kv_transfer_params` is a field that engines use among themselves. Clients may not send it: leave it out. (Setting: engine-fields.)\",\"type\":\"BadRequestError\",\"param\":\"kv_transfer_params\",\"code\":400}}"
    log request
A posts /v1/completions {"model":"m","prompt":"x","stream":true,"vllm_xargs":{"\u006bv_transfer_params":"x"}}
    to A: HTTP/1.1 400 Bad Request; Content-Length: 220; x-grapevine-limit: engine-fields "{\"error\":{\"message\":\"`kv_transfer_params` is a field that engines use among themselves. Clients may not send it: leave it out. (Setting: engine-fields.)\",\"type\":\"BadRequestError\",\"param\":\"kv_transfer_params\",\"code\":400}}"
    log request
A posts /v1/responses {"model":"m","input":"x","ec_transfer_params":[]}
    to A: HTTP/1.1 400 Bad Request; Content-Length: 220; x-grapevine-limit: engine-fields "{\"error\":{\"message\":\"`ec_transfer_params` is a field that engines use among themselves. Clients may not send it: leave it out. (Setting: engine-fields.)\",\"type\":\"BadRequestError\",\"param\":\"ec_transfer_params\",\"code\":400}}"
    log request
A posts /v1/messages {"model":"m","messages":[],"disaggregated_params":{"request_type":"context_only"}}
    to A: HTTP/1.1 400 Bad Request; Content-Length: 251; x-grapevine-limit: engine-fields "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"`disaggregated_params` is a field that engines use among themselves. Clients may not send it: leave it out. (Setting: engine-fields.)\"},\"request_id\":\"ba5593a96e2fd24c1bf23f138ea679b1\"}"
    log request
A posts /generate {"text":"x","bootstrap_host":"evil","bootstrap_port":1}
    to A: HTTP/1.1 400 Bad Request; Content-Length: 212; x-grapevine-limit: engine-fields "{\"error\":{\"message\":\"`bootstrap_port` is a field that engines use among themselves. Clients may not send it: leave it out. (Setting: engine-fields.)\",\"type\":\"BadRequestError\",\"param\":\"bootstrap_port\",\"code\":400}}"
    log request
A posts /inference/v1/generate {"token_ids":[1],"sampling_params":{"extra_args":{"kv_transfer_params":{}}}}
    to A: HTTP/1.1 400 Bad Request; Content-Length: 220; x-grapevine-limit: engine-fields "{\"error\":{\"message\":\"`kv_transfer_params` is a field that engines use among themselves. Clients may not send it: leave it out. (Setting: engine-fields.)\",\"type\":\"BadRequestError\",\"param\":\"kv_transfer_params\",\"code\":400}}"
    log request
A posts /v1/embeddings {"model":"m","input":"x","request_id":"___prefill_addr_1.2.3.4:5___decode_addr_1.2.3.4:6_x"}
    to A: HTTP/1.1 400 Bad Request; Content-Length: 216; x-grapevine-limit: engine-fields "{\"error\":{\"message\":\"`request_id` contains `___prefill_addr_`, with which engines send each other addresses: use an id without it. (Setting: engine-fields.)\",\"type\":\"BadRequestError\",\"param\":\"request_id\",\"code\":400}}"
    log request
A posts /v1/images/generations {"model":"m","prompt":"x","bootstrap_room":7}
    to A: HTTP/1.1 400 Bad Request; Content-Length: 212; x-grapevine-limit: engine-fields "{\"error\":{\"message\":\"`bootstrap_room` is a field that engines use among themselves. Clients may not send it: leave it out. (Setting: engine-fields.)\",\"type\":\"BadRequestError\",\"param\":\"bootstrap_room\",\"code\":400}}"
    log request
A sends "POST /v1/completions HTTP/1.1\r\nHost: g\r\nx_prefiller-host-port: evil:1\r\nContent-Length: 0\r\n\r\n"
    to A: HTTP/1.1 400 Bad Request; Content-Length: 226; x-grapevine-limit: engine-fields "{\"error\":{\"message\":\"`x_prefiller-host-port` is a field that engines use among themselves. Clients may not send it: leave it out. (Setting: engine-fields.)\",\"type\":\"BadRequestError\",\"param\":\"x_prefiller-host-port\",\"code\":400}}"
    log request
B connects
B sends "GET /v1/responses/r1 HTTP/1.1\r\nHost: g\r\nX-Request-Id: ___decode_addr_1.2.3.4:5_x\r\n\r\n"
    to B: HTTP/1.1 400 Bad Request; Content-Length: 219; x-request-id: ___decode_addr_1.2.3.4:5_x; x-grapevine-limit: engine-fields "{\"error\":{\"message\":\"`x-request-id` contains `___decode_addr_`, with which engines send each other addresses: use an id without it. (Setting: engine-fields.)\",\"type\":\"BadRequestError\",\"param\":\"x-request-id\",\"code\":400}}"
    log request
# It could not be read here, and might be elsewhere.
B posts /v1/completions "{\"model\":\"m\",\"prompt\":\"x\",\"n\":NaN,\"kv_transfer_params\":{}}"
    to B: HTTP/1.1 400 Bad Request; Content-Length: 220; x-grapevine-limit: engine-fields "{\"error\":{\"message\":\"`kv_transfer_params` is a field that engines use among themselves. Clients may not send it: leave it out. (Setting: engine-fields.)\",\"type\":\"BadRequestError\",\"param\":\"kv_transfer_params\",\"code\":400}}"
    log request
B posts /v1/completions "{\"model\":\"m\",\"prompt\":\"x\",\"n\":NaN}"
    connect 1a
    book B at 1
1a accepts
    to 1a: POST /v1/completions HTTP/1.1; Content-Length: 34 "{\"model\":\"m\",\"prompt\":\"x\",\"n\":NaN}"
1a answers 400 {}
    to B: HTTP/1.1 400 X; Content-Length: 2 "{}"
    log request
    release B at 1
B posts /v1/chat/completions {"model":"m","messages":[],"kv_transfer_params":null,"bootstrap_room":null}
    to 1a: POST /v1/chat/completions HTTP/1.1; Content-Length: 75 "{\"model\":\"m\",\"messages\":[],\"kv_transfer_params\":null,\"bootstrap_room\":null}"
    book B at 1
1a answers 200 {}
    to B: HTTP/1.1 200 X; Content-Length: 2 "{}"
    release B at 1
counters
    requests 13, 2xx 1, 4xx 12, refused engine field 11, upstream reused 1, not understood 2
