"""The engine simulator answers as the real engine was recorded, and fails on demand."""

import errno
import json
import signal
import socket
import time

from lib import HOST, Case, chunked, request, wait_for

TEXT = "In the beginning the router knew nothing of what its replicas held. " * 40
JSON = ("Content-Type", "application/json")


def chat(content="Hello world", **more):
    messages = content if isinstance(content, list) else [{"role": "user", "content": content}]
    return dict({"model": "tiny", "messages": messages, "max_tokens": 5, "ignore_eos": True}, **more)


def refused(port):
    with socket.socket() as s:
        return s.connect_ex((HOST, port)) == errno.ECONNREFUSED


def events(body):
    """[(event name or None, data)], data parsed unless it is [DONE]."""
    out = []
    for block in body.decode().split("\n\n")[:-1]:
        lines = block.split("\n")
        name = lines[0][len("event: "):] if lines[0].startswith("event: ") else None
        data = lines[-1]
        assert data.startswith("data: "), block
        out.append((name, data[6:] if data == "data: [DONE]" else json.loads(data[6:])))
    return out


class SimCase(Case):
    arguments = ("--model", "tiny", "--block-tokens", "16", "--speed-up", "20")

    def setUp(self):
        super().setUp()
        self.one = self.sim(*self.arguments)
        self.c = self.client(self.one)

    def stats(self):
        return self.one.call("GET", "/sim/stats")

    def fail_by(self, mode, **how):
        self.assertEqual(self.one.call("POST", "/sim/fail", dict(how, mode=mode)), {"ok": True})

    def metrics(self):
        lines = self.c.ask("GET", "/metrics").body.decode().splitlines()
        return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))

    def error(self, r, status, type, param):
        self.assertEqual(r.status, status, r)
        self.assertEqual((r.json["error"]["type"], r.json["error"]["param"],
                          r.json["error"]["code"]), (type, param, status))
        return r.json["error"]["message"]


class Surface(SimCase):
    def test_plain_gets(self):
        r = self.c.ask("GET", "/v1/models")
        model = r.json["data"][0]
        self.assertEqual((model["id"], model["owned_by"], model["parent"]), ("tiny", "vllm", None))
        self.assertEqual(model["max_model_len"], 131072)
        self.assertEqual(r.names()[:2], ["date", "server"])
        self.assertEqual((r.get("server"), r.get("vary")), ("uvicorn", "Origin"))
        self.assertEqual(self.c.ask("GET", "/version").json, {"version": "0.32.0"})
        self.assertEqual(self.c.ask("GET", "/load").json, {"server_load": 0})
        for path in ("/health", "/ping"):
            r = self.c.ask("GET", path)
            self.assertEqual((r.status, r.body), (200, b""))

    def test_chat(self):
        r = self.c.post("/v1/chat/completions", chat(), [("X-Request-Id", "my-req-1")])
        self.assertEqual(r.status, 200)
        self.assertEqual(list(r.json), [
            "id", "object", "created", "model", "choices", "service_tier", "system_fingerprint",
            "usage", "prompt_logprobs", "prompt_token_ids", "prompt_text", "kv_transfer_params",
            "ec_transfer_params", "metrics"])
        self.assertEqual(r.json["id"], "chatcmpl-my-req-1")
        choice = r.json["choices"][0]
        self.assertEqual(choice["finish_reason"], "length")
        self.assertEqual(len(choice["message"]["content"].split()), 5)
        usage = r.json["usage"]
        self.assertEqual((usage["completion_tokens"], usage["total_tokens"]),
                         (5, usage["prompt_tokens"] + 5))
        self.assertEqual(usage["prompt_tokens_details"],
                         {"cached_tokens": 0, "created_cache_tokens": 0, "multimodal_tokens": None})

    def test_chat_streamed(self):
        whole = self.c.post("/v1/chat/completions", chat()).json
        r = self.c.post("/v1/chat/completions",
                        chat(stream=True, stream_options={"include_usage": True}))
        self.assertEqual(r.get("content-type"), "text/event-stream; charset=utf-8")
        self.assertEqual(r.get("transfer-encoding"), "chunked")
        data = [d for _, d in events(r.body)]
        self.assertEqual(data[-1], "[DONE]")
        self.assertEqual(data[0]["choices"][0]["delta"], {"role": "assistant", "content": ""})
        self.assertEqual(data[-2]["choices"], [])
        self.assertEqual(data[-2]["usage"]["completion_tokens"], 5)
        self.assertEqual(list(data[-2]["usage"]["prompt_tokens_details"]),
                         ["cached_tokens", "created_cache_tokens"])
        text = "".join(d["choices"][0]["delta"]["content"] for d in data[1:-2])
        self.assertEqual(text, whole["choices"][0]["message"]["content"])
        reasons = [d["choices"][0]["finish_reason"] for d in data[:-2]]
        self.assertEqual(reasons, [None] * (len(reasons) - 1) + ["length"])
        self.assertEqual(len({d["id"] for d in data[:-1]}), 1)
        self.assertEqual([i for i, d in enumerate(data[:-1]) if "system_fingerprint" in d], [len(data) - 2])
        r = self.c.post("/v1/chat/completions", chat(stream=True))
        self.assertNotIn(b"usage", r.body)
        data = [d for _, d in events(r.body)]
        self.assertEqual([i for i, d in enumerate(data[:-1]) if "system_fingerprint" in d], [len(data) - 2])
        self.assertEqual(data[-2]["choices"][0]["finish_reason"], "length")

    def test_completions(self):
        r = self.c.post("/v1/completions", {"prompt": TEXT})
        self.assertEqual(r.json["usage"]["completion_tokens"], 16)
        self.assertEqual(r.json["id"][:5], "cmpl-")
        ids = self.c.post("/tokenize", {"prompt": TEXT}).json
        self.assertEqual(ids["count"], r.json["usage"]["prompt_tokens"])
        again = self.c.post("/v1/completions", {"prompt": ids["tokens"], "stream": True,
                                                "stream_options": {"include_usage": True}})
        data = [d for _, d in events(again.body)]
        self.assertEqual("".join(d["choices"][0]["text"] for d in data[:-2]),
                         r.json["choices"][0]["text"])
        cached = data[-2]["usage"]["prompt_tokens_details"]["cached_tokens"]
        self.assertEqual(cached, (ids["count"] - 1) // 16 * 16)
        r = self.c.post("/v1/completions", {"prompt": [1, 1 << 30]})
        self.assertEqual(r.status, 400)

    def test_messages(self):
        ask = chat(TEXT, system="Be brief.")
        usage = self.c.post("/v1/messages", ask).json["usage"]
        self.assertEqual(usage["cache_read_input_tokens"], 0)
        self.assertGreater(usage["cache_creation_input_tokens"], 400)
        self.assertLess(usage["input_tokens"], 17)
        r = self.c.post("/v1/messages", dict(ask, stream=True))
        names = [n for n, _ in events(r.body)]
        self.assertEqual(names[:2], ["message_start", "content_block_start"])
        self.assertEqual(names[-3:], ["content_block_stop", "message_delta", "message_stop"])
        again = events(r.body)[-2][1]["usage"]
        self.assertEqual(again["cache_read_input_tokens"], usage["cache_creation_input_tokens"])

    def test_responses(self):
        first = self.c.post("/v1/responses", {"input": TEXT, "max_output_tokens": 20}).json
        self.assertEqual(first["status"], "incomplete")
        self.assertEqual(self.c.ask("GET", "/v1/responses/" + first["id"]).json, first)
        self.assertEqual(self.c.ask("POST", "/v1/responses/%s/cancel" % first["id"]).status, 400)
        r = self.c.post("/v1/responses", {"input": "Go on", "max_output_tokens": 3, "stream": True,
                                          "previous_response_id": first["id"]})
        last = events(r.body)[-1]
        self.assertEqual(last[0], "response.completed")
        numbers = [d["sequence_number"] for _, d in events(r.body)]
        self.assertEqual(numbers, list(range(len(numbers))))
        usage = last[1]["response"]["usage"]
        self.assertGreater(usage["input_tokens"], first["usage"]["total_tokens"])
        self.assertGreaterEqual(usage["input_tokens_details"]["cached_tokens"],
                                first["usage"]["total_tokens"] // 16 * 16)
        r = self.c.post("/v1/responses", {"input": "x", "previous_response_id": "resp_no"})
        self.error(r, 404, "NotFoundError", "response_id")
        self.assertEqual(self.c.ask("GET", "/v1/responses/resp_no").status, 404)

    def test_background_response_is_cancelled(self):
        r = self.c.post("/v1/responses", {"input": "x", "max_output_tokens": 50000,
                                          "background": True}).json
        self.assertEqual((r["status"], r["output"]), ("queued", []))
        wait_for(lambda: self.c.ask("GET", "/v1/responses/" + r["id"]).json["status"] ==
                 "in_progress", "progress")
        done = self.c.ask("POST", "/v1/responses/%s/cancel" % r["id"]).json
        self.assertEqual(done["status"], "cancelled")
        self.assertEqual(self.stats()["running"], 0)

    def test_tool_calls(self):
        tools = [{"type": "function", "function": {
            "name": "look", "parameters": {"properties": {"name": {"type": "string"}}}}}]
        ask = chat(tools=tools, tool_choice="required")
        choice = self.c.post("/v1/chat/completions", ask).json["choices"][0]
        self.assertEqual(choice["finish_reason"], "tool_calls")
        call = choice["message"]["tool_calls"][0]["function"]
        self.assertEqual(call["name"], "look")
        r = self.c.post("/v1/chat/completions", dict(ask, stream=True))
        deltas = [d["choices"][0]["delta"] for _, d in events(r.body)[1:-1]]
        self.assertEqual(deltas[0]["tool_calls"][0]["function"]["name"], "look")
        arguments = "".join(d["tool_calls"][0]["function"]["arguments"] for d in deltas)
        self.assertEqual(json.loads(arguments), json.loads(call["arguments"]))
        auto = self.c.post("/v1/chat/completions", chat(tools=tools)).json["choices"][0]
        self.assertTrue(auto["message"]["content"])
        r = self.c.post("/v1/messages", chat(tools=[{"name": "look", "input_schema": {}}],
                                             tool_choice={"type": "any"}))
        self.assertEqual((r.json["stop_reason"], r.json["content"][0]["name"]),
                         ("tool_use", "look"))

    def test_embeddings(self):
        r = self.c.post("/v1/embeddings", {"model": "tiny", "input": "Hello world"}).json
        self.assertEqual(len(r["data"][0]["embedding"]), 64)
        self.assertGreater(r["usage"]["prompt_tokens"], 0)

    def test_last_request_is_shown(self):
        self.c.post("/v1/chat/completions", chat("h\u00e4\n"), [("X-Mark", "7")])
        last = self.one.call("GET", "/sim/last")
        self.assertIn(["X-Mark", "7"], last["headers"])
        self.assertEqual(json.loads(last["body"]), chat("h\u00e4\n"))


class Cache(SimCase):
    def cached(self, messages, **more):
        r = self.c.post("/v1/chat/completions", chat(messages, **more)).json
        usage = r["usage"]
        return (r["choices"][0]["message"]["content"], usage["prompt_tokens"],
                usage["prompt_tokens_details"]["cached_tokens"])

    def test_second_turn(self):
        turns = [{"role": "system", "content": "You are terse."}, {"role": "user", "content": TEXT}]
        answer, prompt, cached = self.cached(turns, max_tokens=40)
        self.assertEqual(cached, 0)
        turns += [{"role": "assistant", "content": answer}, {"role": "user", "content": "Why?"}]
        _, _, cached = self.cached(turns)
        self.assertEqual(cached, (prompt + 40) // 16 * 16)

    def test_body_order_and_escapes_do_not_matter(self):
        a = json.dumps({"model": "tiny", "max_tokens": 1, "tools": [{"x": TEXT}],
                        "messages": [{"role": "user", "content": "\u00e9\n" + TEXT}]})
        b = json.dumps({"messages": [{"content": "\u00e9\n" + TEXT, "role": "user"}],
                        "tools": [{"x": TEXT}], "max_tokens": 1, "model": "tiny"},
                       ensure_ascii=False)
        for body, some in ((a, False), (b, True)):
            r = self.c.ask("POST", "/v1/chat/completions", body.encode(), [JSON])
            self.assertEqual(r.json["usage"]["prompt_tokens_details"]["cached_tokens"] > 900, some)

    def test_a_cache_salt_separates_prompts(self):
        self.cached(TEXT, cache_salt="a")
        self.assertEqual(self.cached(TEXT, cache_salt="b")[2], 0)
        self.assertGreater(self.cached(TEXT, cache_salt="a")[2], 0)
        r = self.c.post("/v1/chat/completions", chat(cache_salt=""))
        self.assertEqual(r.status, 400)

    def test_lru_and_metrics(self):
        self.one.stop()
        self.one = self.sim(*self.arguments, "--cache-tokens", "1280")
        self.c = self.client(self.one)
        for i in (1, 2, 1, 3):  # some 540 tokens each: the third prompt pushes out the second
            self.cached("%d%s" % (i, TEXT))
        self.assertGreater(self.cached("1" + TEXT)[2], 500)
        self.assertLess(self.cached("2" + TEXT)[2], 500)
        m = self.metrics()
        label = '{engine="0",model_name="tiny"}'
        stats = self.stats()
        self.assertEqual(float(m["vllm:prefix_cache_hits_total" + label]), stats["cached_tokens"])
        self.assertEqual(float(m["vllm:prefix_cache_queries_total" + label]),
                         stats["prompt_tokens"])
        self.assertEqual(float(m["vllm:num_requests_running" + label]), 0)
        info = [k for k in m if k.startswith("vllm:cache_config_info")][0]
        self.assertIn('block_size="16"', info)
        self.assertIn('num_gpu_blocks="81"', info)  # one of which is never handed out
        self.assertEqual(stats["cache_blocks_used"], 0)

    def test_tokens_loaded_from_a_tier_count_as_cached(self):
        """/sim/stats left these tokens out, which usage counts."""
        self.one.stop()
        self.one = self.sim(*self.arguments, "--cache-tokens", "640", "--tier-tokens", "6400")
        self.c = self.client(self.one)
        cached = sum(self.cached(text + TEXT)[2] for text in ("1", "2", "1"))
        tier = self.metrics()['vllm:external_prefix_cache_hits_total{engine="0",model_name="tiny"}']
        self.assertGreater(float(tier), 0)
        self.assertEqual(self.stats()["cached_tokens"], cached)

    def test_prompt_token_details_can_be_off(self):
        self.one.stop()
        self.one = self.sim(*self.arguments, "--prompt-tokens-details", "off")
        self.c = self.client(self.one)
        r = self.c.post("/v1/chat/completions", chat())
        self.assertIsNone(r.json["usage"]["prompt_tokens_details"])
        r = self.c.post("/v1/chat/completions",
                        chat(stream=True, stream_options={"include_usage": True}))
        self.assertNotIn(b"prompt_tokens_details", r.body)


class Errors(SimCase):
    def test_error_table(self):
        post = self.c.post
        path = "/v1/chat/completions"
        message = self.error(post(path, chat(model="nope")), 404, "NotFoundError", "model")
        self.assertEqual(message, "The model `nope` does not exist. Valid aliases: tiny.")
        self.error(post(path, {}), 400, "Bad Request", "body.messages")
        self.error(self.c.ask("POST", path, b'{"model":"tiny",', [JSON]), 400, "Bad Request",
                   "body.16")
        self.error(self.c.ask("POST", path, b"{}"), 400, "Bad Request", None)
        message = self.error(post(path, chat(TEXT * 300, stream=True)), 400, "BadRequestError",
                             "input_tokens")
        self.assertIn("maximum context length is 131072 tokens", message)
        self.error(post(path, chat(max_tokens=200000)), 400, "BadRequestError", "max_tokens")
        r = post(path, chat(), [("X-data-parallel-rank", "1")])
        self.error(r, 400, "BadRequestError", None)
        r = self.c.ask("GET", "/v1/nothing")
        self.assertEqual((r.status, r.json), (404, {"detail": "Not Found"}))
        r = self.c.ask("GET", path)
        self.assertEqual((r.status, r.json, r.get("allow")),
                         (405, {"detail": "Method Not Allowed"}, "POST"))

    def test_not_http(self):
        self.c.send(b"\x16\x03\x01 hello\r\n\r\n")
        r = self.c.read()
        self.assertEqual((r.status, r.body), (400, b"Invalid HTTP request received."))
        self.assertEqual(r.get("connection"), "close")
        self.assertTrue(self.c.is_closed())

    def test_queue_full(self):
        self.one.stop()
        self.one = self.sim(*self.arguments, "--max-queued", "1")
        self.c = self.client(self.one)
        busy = self.client(self.one)
        busy.send(request("POST", "/v1/chat/completions",
                          json.dumps(chat(max_tokens=50000)).encode(), [JSON]))
        wait_for(lambda: self.stats()["running"] == 1, "a running request")
        r = self.c.post("/v1/chat/completions", chat())
        self.assertIn("currently busy", self.error(r, 503, "Service Unavailable", None))
        self.assertIsNone(r.get("retry-after"))
        r = self.c.post("/v1/messages", chat())
        self.assertEqual((r.status, r.json["type"]), (503, "error"))
        self.assertEqual(self.c.ask("GET", "/health").status, 200)

    def test_api_key(self):
        self.one.stop()
        self.one = self.sim(*self.arguments, "--api-key", "secret")
        self.c = self.client(self.one)
        r = self.c.ask("GET", "/v1/models")
        self.assertEqual((r.status, r.json), (401, {"error": "Unauthorized"}))
        r = self.c.ask("GET", "/v1/models", headers=[("Authorization", "Bearer secret")])
        self.assertEqual(r.status, 200)
        for path in ("/metrics", "/ping", "/health"):
            self.assertEqual(self.c.ask("GET", path).status, 200)
        self.assertEqual(self.c.ask("GET", "/v1/models", headers=[("x-api-key", "secret")]).status,
                         401)


class Connections(SimCase):
    def test_client_gone_aborts(self):
        for stream in (True, False):
            c = self.client(self.one)
            c.send(request("POST", "/v1/chat/completions",
                           json.dumps(chat(max_tokens=50000, stream=stream)).encode(), [JSON]))
            wait_for(lambda: self.stats()["running"] == 1, "a running request")
            c.close()
            wait_for(lambda: self.stats()["running"] == 0, "the abort")
        self.assertEqual(self.stats()["aborted"], 2)
        self.assertEqual(self.stats()["cache_blocks_used"], 0)

    def test_idle_connection_is_closed_after_5_s(self):
        silent = self.client(self.one)
        self.c.ask("GET", "/health")
        start = time.monotonic()
        self.c.sock.settimeout(20)
        self.assertTrue(self.c.is_closed())
        self.assertGreater(time.monotonic() - start, 4.9)
        self.assertTrue(silent.is_open())  # one that never sent a byte stays

    def test_pipelined_chunked_and_expected(self):
        body = json.dumps(chat()).encode()
        plain = request("POST", "/v1/chat/completions", body, [JSON])
        self.c.send(plain + request("GET", "/version") + plain)
        self.assertEqual(self.c.read().json["object"], "chat.completion")
        self.assertEqual(self.c.read().json, {"version": "0.32.0"})
        self.assertEqual(self.c.read().json["object"], "chat.completion")
        self.c.send(request("POST", "/v1/chat/completions", chunked(body, 7),
                            [JSON, ("Transfer-Encoding", "chunked")]))
        self.assertEqual(self.c.read().status, 200)
        self.c.send(request("POST", "/v1/chat/completions", b"", [
            JSON, ("Content-Length", "%d" % len(body)), ("Expect", "100-continue")]))
        self.assertEqual(self.c.head().status, 100)
        self.c.send(body)
        self.assertEqual(self.c.read().status, 200)

    def test_http_1_0(self):
        r = self.c.ask("POST", "/v1/chat/completions", json.dumps(chat(stream=True)).encode(),
                       [JSON], version="1.0")
        self.assertIsNone(r.get("transfer-encoding"))
        self.assertTrue(r.body.endswith(b"data: [DONE]\n\n"))


class Time(SimCase):
    arguments = ("--model", "tiny", "--prefill-rate", "5000", "--decode-base-ms", "20",
                 "--speed-up", "2")

    def test_not_faster_than_the_model(self):
        start = time.monotonic()
        arrived = []
        ask = json.dumps(chat(TEXT, max_tokens=6, stream=True)).encode()
        self.c.send(request("POST", "/v1/chat/completions", ask, [JSON]))
        r = self.c.read(on_chunk=lambda data: arrived.append(time.monotonic() - start))
        prompt = 500  # tokens, at least
        self.assertEqual(r.status, 200)
        self.assertGreater(arrived[1], prompt / 5000 / 2)
        self.assertGreater(arrived[-1], (prompt / 5000 + 5 * 0.020) / 2)


class Failures(SimCase):
    def test_status(self):
        self.fail_by("status_500", count=1)
        self.assertEqual(self.c.post("/v1/chat/completions", chat()).status, 500)
        self.assertEqual(self.c.post("/v1/chat/completions", chat()).status, 200)
        self.fail_by("status_503", health=True)
        self.assertEqual(self.c.post("/v1/messages", chat()).status, 503)
        self.assertEqual(self.c.ask("GET", "/health").status, 503)
        self.fail_by("none")
        self.assertEqual(self.c.ask("GET", "/health").status, 200)
        self.assertEqual(self.c.post("/v1/messages", chat()).status, 200)

    def test_reset_mid_stream(self):
        self.fail_by("reset_mid_stream", after_chunks=2, count=1)
        ask = json.dumps(chat(max_tokens=50000, stream=True)).encode()
        self.c.send(request("POST", "/v1/chat/completions", ask, [JSON]))
        with self.assertRaises(ConnectionResetError):
            self.c.read()
        self.assertEqual(self.c.reader.log.count(b'{"content":'), 2)
        self.assertEqual(self.stats()["running"], 0)

    def test_hang(self):
        self.fail_by("hang", after_chunks=1, count=2)
        streamed, whole = self.client(self.one), self.client(self.one)
        for c, stream in ((streamed, True), (whole, False)):
            c.send(request("POST", "/v1/chat/completions",
                           json.dumps(chat(stream=stream, max_tokens=500 if stream else 5)).encode(), [JSON]))
        wait_for(lambda: self.stats()["running"] == 0 and self.stats()["requests"] == 2, "the end")
        streamed.head()
        streamed.reader.until(b'{"content":')
        streamed.reader.until(b"\n\n\r\n")
        self.assertEqual(self.c.post("/v1/chat/completions", chat()).status, 200)  # a later request
        self.assertTrue(streamed.is_open() and whole.is_open())
        for c in (streamed, whole):
            c.close()
        wait_for(lambda: self.stats()["connections"] == 2, "the end of both")

    def test_metrics_of_a_stuck_engine_are_those_of_its_last_step(self):
        """As with a real engine whose worker hangs: requests that came since are neither counted nor shown."""
        before = self.metrics()
        self.fail_by("stuck")
        stuck = self.client(self.one)
        stuck.send(request("POST", "/v1/chat/completions", json.dumps(chat(TEXT)).encode(), [JSON]))
        wait_for(lambda: self.stats()["running"] == 1, "a running request")
        self.assertEqual(self.metrics(), before)
        self.fail_by("none")
        self.assertEqual(stuck.read().status, 200)
        self.assertGreater(float(self.metrics()['vllm:prefix_cache_queries_total{engine="0",model_name="tiny"}']), 0)

    def test_slow(self):
        self.fail_by("slow", delay_ms=150, count=1)
        start = time.monotonic()
        self.assertEqual(self.c.post("/v1/chat/completions", chat()).status, 200)
        self.assertGreater(time.monotonic() - start, 0.15)
        self.fail_by("slow", delay_ms=60000, count=1)
        gone = self.client(self.one)
        gone.send(request("POST", "/v1/chat/completions", json.dumps(chat()).encode(), [JSON]))
        wait_for(lambda: self.stats()["requests"] == 2, "the request")
        gone.close()

    def test_refuse(self):
        self.fail_by("refuse", for_ms=300)
        self.assertTrue(self.c.is_closed())
        self.assertTrue(refused(self.one.port))
        wait_for(lambda: not refused(self.one.port), "the listener")
        self.assertEqual(self.client(self.one).ask("GET", "/health").status, 200)

    def test_restart(self):
        ask = chat(TEXT)
        self.c.post("/v1/chat/completions", ask)
        started = float(self.metrics()["process_start_time_seconds"])
        open_stream = self.client(self.one)
        open_stream.send(request("POST", "/v1/chat/completions",
                                 json.dumps(chat(max_tokens=50000)).encode(), [JSON]))
        wait_for(lambda: self.stats()["running"] == 1, "a running request")
        wait_for(lambda: time.time() > started + 0.02, "a later hundredth of a second")
        self.assertEqual(self.one.call("POST", "/sim/restart"), {"ok": True})
        self.assertTrue(open_stream.is_closed())
        self.assertEqual(self.stats()["requests"], 0)
        self.c = self.client(self.one)
        self.assertGreater(float(self.metrics()["process_start_time_seconds"]), started)
        usage = self.c.post("/v1/chat/completions", ask).json["usage"]
        self.assertEqual(usage["prompt_tokens_details"]["cached_tokens"], 0)

    def test_an_invalid_fault_is_refused(self):
        self.assertIn("error", self.one.call("POST", "/sim/fail", {"mode": "explode"}))
        self.assertIn("error", self.one.call("POST", "/sim/fail", {"mode": "refuse"}))


class Term(Case):
    def begin(self, *args, tokens=30):
        sim = self.sim("--model", "tiny", *args)
        c = self.client(sim)
        c.send(request("POST", "/v1/chat/completions",
                       json.dumps(chat(max_tokens=tokens)).encode(), [JSON]))
        wait_for(lambda: sim.call("GET", "/sim/stats")["running"] == 1, "a running request")
        idle = self.client(sim)
        idle.ask("GET", "/health")
        sim.signal(signal.SIGTERM)
        return sim, c, idle

    def clean(self, sim):
        status = sim.wait()
        self.assertEqual((status, sim.lines), (0, []))

    def test_exit(self):
        sim, c, _ = self.begin(tokens=50000)
        self.assertTrue(c.is_closed())
        self.clean(sim)

    def test_exit_while_a_step_is_due(self):
        """The model's next step comes due while the engine is taken apart."""
        for _ in range(10):
            sim = self.sim("--model", "tiny", "--decode-base-ms", "0.3", "--prefill-rate", "1e9")
            c = self.client(sim)
            c.send(request("POST", "/v1/chat/completions",
                           json.dumps(chat(max_tokens=100000)).encode(), [JSON]))
            wait_for(lambda: sim.call("GET", "/sim/stats")["running"] == 1, "a running request")
            sim.signal(signal.SIGTERM)
            self.clean(sim)

    def test_drain(self):
        sim, c, idle = self.begin("--on-term", "drain", tokens=100)
        self.assertTrue(idle.is_closed())
        late = self.client(sim)
        self.assertEqual(late.ask("GET", "/health").status, 200)
        r = late.post("/v1/chat/completions", chat())
        self.assertEqual(r.status, 500)
        self.assertIn("cannot schedule new futures", r.json["error"]["message"])
        self.assertEqual(c.read().status, 200)
        self.clean(sim)

    def test_hang(self):
        sim, c, idle = self.begin("--on-term", "hang")
        self.assertTrue(idle.is_closed())
        wait_for(lambda: refused(sim.port), "the port to be closed")
        well = self.client(self.sim("--model", "tiny"))
        self.assertEqual(well.post("/v1/chat/completions", chat(max_tokens=30)).status, 200)  # so long it takes
        self.assertTrue(c.is_open())
        c.close()
        self.clean(sim)


class Sglang(SimCase):
    arguments = ("--engine", "sglang", "--model", "tiny", "--block-tokens", "16",
                 "--speed-up", "20", "--cache-tokens", "16000")

    def test_surface(self):
        info = self.c.ask("GET", "/server_info").json
        self.assertEqual((info["max_total_num_tokens"], info["page_size"]), (16000, 16))
        self.assertTrue(self.c.ask("GET", "/get_model_info").json["is_generation"])
        self.assertEqual(self.c.ask("GET", "/version").status, 404)
        self.assertEqual(self.c.ask("GET", "/health").status, 200)
        ask = {"text": TEXT, "sampling_params": {"max_new_tokens": 4, "ignore_eos": True}}
        whole = self.c.post("/generate", ask).json
        self.assertEqual(whole["meta_info"]["finish_reason"], {"type": "length", "length": 4})
        r = self.c.post("/generate", dict(ask, stream=True))
        data = [d for _, d in events(r.body)]
        self.assertEqual(data[-2]["text"], whole["text"])  # each chunk has all so far
        self.assertGreater(data[-2]["meta_info"]["cached_tokens"], 400)
        m = self.metrics()
        rank = '{engine_type="unified",model_name="tiny",pp_rank="0",tp_rank="0"}'
        self.assertEqual(float(m["sglang:max_total_num_tokens" + rank]), 16000)

    def test_health_hangs_if_the_scheduler_hangs(self):
        """If the scheduler hangs, /health hangs too; the rest of the server answers."""
        self.fail_by("stuck")
        probe = self.client(self.one)
        probe.send(request("GET", "/health"))
        self.assertEqual(self.c.ask("GET", "/ping").status, 200)  # the engine has read the probe by then
        well = self.client(self.sim(*self.arguments))
        self.assertEqual(well.ask("GET", "/health").status, 200)  # so long it takes
        for path in ("/ping", "/metrics", "/v1/models"):
            self.assertEqual(self.c.ask("GET", path).status, 200)
        self.assertTrue(probe.is_open())
        self.fail_by("none")
        self.assertEqual(self.c.ask("GET", "/health").status, 200)

    def test_any_model_name_is_accepted(self):
        for model in ("nope", "tiny"):
            r = self.c.post("/v1/chat/completions", chat(
                model=model, messages=[{"role": "user", "content": TEXT}]))
            self.assertEqual((r.status, r.json["model"]), (200, model))
        self.assertGreater(r.json["usage"]["prompt_tokens_details"]["cached_tokens"], 0)
        unnamed = chat()
        unnamed.pop("model", None)
        self.assertEqual(self.c.post("/v1/chat/completions", unnamed).json["model"], "default")
        r = self.c.post("/v1/chat/completions", chat(model="tiny:x"))
        self.assertEqual((r.status, r.json["object"], r.json["code"]), (400, "error", 400))

    def test_api_key(self):
        self.one.stop()
        self.one = self.sim(*self.arguments, "--api-key", "secret")
        self.c = self.client(self.one)
        for path in ("/v1/models", "/ping", "/server_info", "/model_info", "/nowhere"):
            r = self.c.ask("GET", path)
            self.assertEqual((r.status, r.json), (401, {"error": "Unauthorized"}), path)
        for path in ("/health", "/metrics"):
            self.assertEqual(self.c.ask("GET", path).status, 200)
        for header in (("Authorization", "Bearer secret"), ("x-api-key", "secret")):
            self.assertEqual(self.c.ask("GET", "/server_info", headers=[header]).status, 200)
