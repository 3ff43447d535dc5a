"""The engine simulator's meaner habits, each of which is off unless a switch asks for it."""

import gzip
import json
import socket
import time

from lib import HOST, LIMIT, request, wait_for
from test_engine_sim import JSON, TEXT, SimCase, chat, events

CHAT = "/v1/chat/completions"
TOOLS = [{"type": "function", "function": {"name": n, "parameters": {"type": "object"}}} for n in ("a", "b")]
SGLANG = ("--engine", "sglang")


class MeanCase(SimCase):
    def again(self, *args):
        """The simulator with these switches too."""
        self.one.stop()
        self.one = self.sim(*self.arguments, *args)
        self.c = self.client(self.one)

    def ask(self, path=CHAT, **more):
        return self.c.post(path, chat(**more))

    def stream(self, on_chunk=None, **more):
        self.c.send(request("POST", CHAT, json.dumps(chat(stream=True, **more)).encode(), [JSON]))
        return self.c.read(on_chunk=on_chunk)

    def sum(self, name):
        """The sum of a metric's series."""
        return sum(float(v) for k, v in self.metrics().items() if k == name or k.startswith(name + "{"))


class Silence(MeanCase):
    arguments = ("--model", "tiny", "--decode-base-ms", "10")

    def pieces(self, r):
        data = [d for _, d in events(r.body)]
        return [d["choices"][0]["delta"].get("content", "") for d in data[:-1] if d["choices"]]

    def test_a_stream_is_silent_while_tokens_are_counted(self):
        for engine, counter in (((), "vllm:generation_tokens_total"),
                                (SGLANG, 'sglang:realtime_tokens_total')):
            self.again(*engine, "--silence", "0.5")
            before = self.sum(counter)
            busy = self.client(self.one)
            busy.send(request("POST", CHAT, json.dumps(chat(max_tokens=100, stream=True)).encode(), [JSON]))
            wait_for(lambda: self.sum(counter) > before + 5, "tokens that are counted")
            first = [p for p in self.pieces(busy.read()) if p]
            self.assertGreater(len(first[0].split()), 5, engine)
            self.assertGreater(len(first), 5, engine)
            self.assertEqual(len("".join(first).split()), 100)

    def test_text_may_come_before_the_silence(self):
        self.again("--silence", "60", "--silence-after", "3")
        pieces = [len(p.split()) for p in self.pieces(self.stream(max_tokens=30)) if p]
        self.assertEqual(sum(pieces), 30)  # [1, 1, 1, 27], where nothing else keeps the machine busy
        self.assertGreater(len(pieces), 1)
        self.assertGreater(pieces[-1], 15)

    def test_tool_calls_on_demand(self):
        self.fail_by("silent", delay_ms=60000, count=1)
        ask = dict(tools=TOOLS, tool_choice="required", max_tokens=30)
        silent = events(self.stream(**ask).body)
        deltas = [d["choices"][0]["delta"] for _, d in silent[:-1]]
        calls = [d["tool_calls"][0]["function"]["arguments"] for d in deltas if "tool_calls" in d]
        self.assertEqual(len(calls), 1)
        json.loads(calls[0])
        self.assertGreater(len(events(self.stream(**ask).body)), len(silent))  # the next one comes in pieces

    def test_a_silent_stream_has_ping_comments(self):
        self.again("--silence", "60", "--ping", "0.05")
        r = self.stream(max_tokens=40)
        self.assertGreater(r.body.count(b": ping\n\n"), 2)
        self.assertEqual(r.body.count(b'"content":"'), 2)


class Metrics(MeanCase):
    def test_steps_are_counted(self):
        self.ask(max_tokens=20)
        self.assertEqual(self.sum("vllm:iteration_tokens_total_count"), 20)
        prompt, made = self.sum("vllm:prompt_tokens_total"), self.sum("vllm:generation_tokens_total")
        self.assertEqual((self.sum("vllm:iteration_tokens_total_sum"), made), (prompt + made, 20))
        label = 'vllm:iteration_tokens_total_bucket{engine="0",le="+Inf",model_name="tiny"}'
        self.assertEqual(float(self.metrics()[label]), 20)

    def test_throughput(self):
        self.again(*SGLANG, "--speed-up", "1", "--decode-base-ms", "1")
        busy = self.client(self.one)
        busy.send(request("POST", CHAT, json.dumps(chat(max_tokens=50000)).encode(), [JSON]))
        wait_for(lambda: self.sum("sglang:gen_throughput") > 100, "a throughput")
        busy.close()
        wait_for(lambda: self.sum("sglang:gen_throughput") == 0, "none")

    def test_metrics_are_rounded(self):
        self.again(*SGLANG, "--metrics-digits", "2", "--speed-up", "1")
        busy = self.client(self.one)
        busy.send(request("POST", CHAT, json.dumps(chat(TEXT, max_tokens=50000)).encode(), [JSON]))
        wait_for(lambda: self.sum("sglang:num_used_tokens") > 0, "tokens in use")
        self.assertEqual(self.sum("sglang:token_usage"), 0)  # 700 of 400,000

    def test_metrics_are_renewed_at_some_steps_only(self):
        self.again(*SGLANG, "--metrics-steps", "40", "--decode-base-ms", "100", "--speed-up", "10")
        busy = self.client(self.one)
        busy.send(request("POST", CHAT, json.dumps(chat(max_tokens=50000)).encode(), [JSON]))
        name = "sglang:realtime_tokens_total"
        wait_for(lambda: self.sum(name) > 0, "the prefill")
        first, seen = self.sum(name), set()
        wait_for(lambda: seen.add(self.sum(name)) or max(seen) > first + 60, "two steps that publish")
        self.assertLessEqual(len(seen), 4)
        busy.close()

    def test_some_counters_move_only_at_the_end_of_an_answer(self):
        for engine, how, counters, live in (
                (SGLANG, "requests", ("sglang:generation_tokens_total",), "sglang:realtime_tokens_total"),
                ((), "all", ("vllm:generation_tokens_total", "vllm:iteration_tokens_total_count"), None)):
            self.again(*engine, "--metrics-at-end", how, "--speed-up", "1")
            busy = self.client(self.one)
            busy.send(request("POST", CHAT, json.dumps(chat(max_tokens=60)).encode(), [JSON]))
            wait_for(lambda: self.stats()["generation_tokens"] > 5, "tokens")
            self.assertEqual([self.sum(c) for c in counters], [0] * len(counters))
            if live:
                self.assertGreater(self.sum(live), 0)
            busy.read()
            self.assertEqual([self.sum(c) for c in counters], [60] * len(counters))

    def test_metrics_may_be_missing(self):
        self.again("--metrics-missing", "vllm:iteration_tokens_total,vllm:generation_tokens_total")
        text = self.c.ask("GET", "/metrics").body.decode()
        self.assertNotIn("iteration_tokens", text)
        self.assertNotIn("generation_tokens", text)
        self.assertIn("# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total{", text)

    def test_counters_begin_again(self):
        self.ask(max_tokens=20)
        start = self.sum("process_start_time_seconds")
        self.fail_by("forget")
        self.assertEqual(self.sum("vllm:generation_tokens_total"), 0)
        self.ask(max_tokens=7)
        self.assertEqual(self.sum("vllm:generation_tokens_total"), 7)
        self.assertEqual(self.sum("process_start_time_seconds"), start)
        self.again("--metrics-reset", "0.1")
        self.ask(max_tokens=20)
        wait_for(lambda: self.sum("vllm:generation_tokens_total") == 0, "a reset")


class Pauses(MeanCase):
    arguments = ("--model", "tiny", "--decode-base-ms", "5")

    def test_the_whole_engine_pauses_and_continues(self):
        other = self.client(self.one)
        times = []
        self.c.send(request("POST", CHAT, json.dumps(chat(max_tokens=100, stream=True)).encode(), [JSON]))
        wait_for(lambda: self.stats()["generation_tokens"] > 3, "tokens")
        begin = time.monotonic()
        self.fail_by("pause", for_ms=700)
        self.assertEqual(other.ask("GET", "/health").status, 200)
        self.assertGreater(time.monotonic() - begin, 0.6)
        r = self.c.read(on_chunk=lambda data: times.append(time.monotonic()))
        self.assertEqual(r.status, 200)
        self.assertTrue(r.body.endswith(b"data: [DONE]\n\n"))

    def test_the_engine_pauses_at_intervals(self):
        self.again("--pause-every", "0.3", "--pause", "0.4")
        times = [time.monotonic()]
        self.stream(on_chunk=lambda data: times.append(time.monotonic()), max_tokens=150)
        self.assertGreater(max(b - a for a, b in zip(times, times[1:])), 0.3)

    def test_only_the_steps_pause(self):
        self.again("--pause-every", "0.3", "--pause", "0.5", "--pause-of", "steps")
        times = [time.monotonic()]
        self.stream(on_chunk=lambda data: times.append(time.monotonic()), max_tokens=150)
        self.assertGreater(max(b - a for a, b in zip(times, times[1:])), 0.4)


class Rejections(MeanCase):
    def test_switches_reject_requests(self):
        for kind, status in (("401", 401), ("403", 403), ("404", 404), ("422", 422), ("no_template", 400)):
            for engine in ((), SGLANG):
                self.again(*engine, "--reject", kind)
                self.assertEqual(self.ask().status, status, (kind, engine))
                self.assertEqual(self.ask(stream=True).status, status, (kind, engine))
                self.assertEqual(self.c.ask("GET", "/health").status, 200)
        r = self.c.post("/v1/completions", {"prompt": "Once", "max_tokens": 3})
        self.assertEqual(r.status, 200)  # this one needs no template

    def test_rejections_on_demand_end(self):
        for mode, status in (("status_401", 401), ("status_403", 403), ("status_404", 404),
                             ("status_422", 422), ("no_template", 400)):
            self.fail_by(mode, count=1)
            self.assertEqual((self.ask().status, self.ask().status), (status, 200), mode)

    def test_the_error_without_a_chat_template(self):
        self.fail_by("no_template")
        self.assertIn("chat template", self.error(self.ask(), 400, "BadRequestError", None))
        self.assertEqual(self.ask("/v1/messages").status, 400)

    def test_no_tool_parser(self):
        for switch in (True, False):
            if switch:
                self.again("--reject", "no_tool_parser")
            else:
                self.fail_by("no_tool_parser")
            message = self.error(self.ask(tools=TOOLS), 400, "BadRequestError", None)
            self.assertIn("--tool-call-parser", message)
            self.assertEqual(self.ask(tools=TOOLS, tool_choice="required").status, 400)
            self.assertEqual(self.ask(tools=TOOLS, tool_choice="none").status, 200)
            self.assertEqual(self.ask().status, 200)
        self.again(*SGLANG, "--reject", "no_tool_parser")  # it answers with text
        choice = self.ask(tools=TOOLS, tool_choice="required").json["choices"][0]
        self.assertTrue(choice["message"]["content"])

    def test_another_context_length(self):
        self.fail_by("context", tokens=100)
        self.assertEqual(self.c.ask("GET", "/v1/models").json["data"][0]["max_model_len"], 100)
        message = self.error(self.ask(TEXT and CHAT, messages=chat(TEXT)["messages"]), 400,
                             "BadRequestError", "input_tokens")
        self.assertIn("maximum context length is 100 tokens", message)
        self.assertEqual(self.ask().status, 200)
        self.fail_by("none")
        self.assertEqual(self.ask(messages=chat(TEXT)["messages"]).status, 200)


class Prompts(MeanCase):
    BILLING = "x-anthropic-billing-header: cc_version=2; cch=%d;"

    def cached(self, path=CHAT, **more):
        usage = self.c.post(path, dict({"model": "tiny", "max_tokens": 1}, **more)).json["usage"]
        if path == "/v1/messages":
            return usage["cache_read_input_tokens"]
        return usage["prompt_tokens_details"]["cached_tokens"]

    def system(self, number):
        blocks = [{"type": "text", "text": self.BILLING % number}, {"type": "text", "text": TEXT}]
        return self.cached("/v1/messages", system=blocks, messages=[{"role": "user", "content": "Hi"}])

    def test_a_leading_block_is_dropped(self):
        self.assertEqual((self.system(1), self.system(2) < 100), (0, True))
        self.again("--prompt-drop", "x-anthropic-billing-header")
        self.assertEqual((self.system(1), self.system(2) > 500), (0, True))

    def test_text_is_added(self):
        plain = self.ask().json["usage"]["prompt_tokens"]
        self.again("--prompt-lead", "Today is Friday, 27 November.")
        self.assertGreater(self.ask().json["usage"]["prompt_tokens"], plain + 4)

    def late(self, **more):
        user = {"role": "user", "content": TEXT}
        return [{"role": "system", "content": "Be brief."}, user, dict({"role": "system"}, **more)]

    def test_system_messages_move_to_the_head(self):
        for switches, found in (((), True), (("--prompt-changes", "system-first"), False)):
            self.again(*switches)
            self.cached(messages=self.late(content="One."))
            self.assertEqual(self.cached(messages=self.late(content="Two.")) > 500, found)

    def test_order_of_tools(self):
        for switches, found in (((), False), (("--prompt-changes", "sort-tools"), True)):
            self.again(*switches)
            messages = [{"role": "user", "content": TEXT}]
            self.cached(messages=messages, tools=TOOLS)
            self.assertEqual(self.cached(messages=messages, tools=TOOLS[::-1]) > 500, found)

    def test_reasoning_is_trimmed(self):
        def turns(thought):
            return [{"role": "user", "content": "Hi"},
                    {"role": "assistant", "reasoning_content": thought, "content": TEXT},
                    {"role": "user", "content": "And?"}]
        for switches, found in (((), False), (("--prompt-changes", "sort-tools,trim-reasoning"), True)):
            self.again(*switches)
            self.cached(messages=turns("First one thing."))
            self.assertEqual(self.cached(messages=turns("Then another.")) > 500, found)


class Framing(MeanCase):
    def words(self, body):
        """The text of a stream, read as the standard says."""
        out = ""
        for line in body.decode().splitlines():
            if line.startswith("data:") and "[DONE]" not in line:
                for choice in json.loads(line[5:])["choices"]:
                    out += choice["delta"].get("content", "")
        return out

    def test_lines(self):
        plain = self.stream()
        words = self.words(plain.body)
        self.again("--framing", "comments,crlf,no-space")
        r = self.stream()
        self.assertEqual(self.words(r.body), words)
        self.assertEqual(r.body.count(b"\n"), r.body.count(b"\r\n"))
        self.assertNotIn(b"data: ", r.body)
        self.assertEqual(r.body.count(b": engine-sim\r\n"), r.body.count(b"data:"))
        self.again("--framing", "giant")
        r = self.stream()
        self.assertEqual((self.words(r.body), r.body.count(b'"content":"')), (words, 2))

    def test_a_byte_at_a_time(self):
        self.again("--framing", "bytes")
        sizes = []
        r = self.stream(on_chunk=lambda data: sizes.append(len(data)))
        self.assertEqual(set(sizes), {1})
        self.assertTrue(r.body.endswith(b"data: [DONE]\n\n"))

    def test_codings(self):
        plain = self.ask(max_tokens=9).json
        for framing, headers, coded in (("gzip", [], False), ("gzip", [("Accept-Encoding", "br, gzip;q=1")], True),
                                        ("gzip-always", [], True), ("gzip-always,bytes", [], True)):
            self.again("--framing", framing)
            for stream in (False, True):
                r = self.c.post(CHAT, chat(max_tokens=9, stream=stream), headers)
                self.assertEqual(r.get("content-encoding"), "gzip" if coded else None)
                body = gzip.decompress(r.body) if coded else r.body
                if stream:
                    self.assertTrue(body.endswith(b"data: [DONE]\n\n"))
                else:
                    self.assertEqual(json.loads(body)["usage"], plain["usage"])
        self.again("--framing", "identity")
        r = self.ask()
        self.assertEqual((r.status, r.get("content-encoding")), (200, "identity"))

    def test_an_error_event_and_done(self):
        self.fail_by("error", after_chunks=0, count=1)
        data = [d for _, d in events(self.stream().body)]
        self.assertIn("error", data[-2])
        self.assertEqual(data[-1], "[DONE]")


class Places(MeanCase):
    def test_the_engine_answers_only_to_its_host_name(self):
        self.again("--host-name", "llm.example")
        for path in ("/health", "/v1/models", "/metrics"):
            self.assertEqual(self.c.ask("GET", path).status, 404)
            self.assertEqual(self.c.ask("GET", path, headers=[("Host", "llm.example:8000")]).status, 200)
        self.assertEqual(self.ask().status, 404)
        self.assertEqual(self.c.post(CHAT, chat(), [("Host", "LLM.example")]).status, 200)

    def names(self):
        return [m["id"] for m in self.c.ask("GET", "/v1/models").json["data"]]

    def test_model_lists_change(self):
        self.again("--max-loras", "2", "--adapters", "one")
        self.assertEqual(self.names(), ["tiny", "one"])
        self.one.call("POST", "/sim/set", {"adapters": ["two"]})
        self.assertEqual(self.names(), ["tiny", "two"])
        self.assertEqual((self.ask(model="one").status, self.ask(model="two").status), (404, 200))
        self.one.call("POST", "/sim/set", {"models": ["other"], "adapters": []})
        self.assertEqual(self.names(), ["other"])
        self.assertEqual((self.ask().status, self.ask(model="other").status), (404, 200))
        self.one.call("POST", "/sim/set", {"models": []})
        self.assertEqual((self.names(), self.ask(model="other").status), ([], 404))

    def test_key_and_context_change(self):
        self.one.call("POST", "/sim/set", {"api_key": "k", "max_model_len": 500})
        self.assertEqual(self.ask().status, 401)
        r = self.c.ask("GET", "/v1/models", headers=[("Authorization", "Bearer k")])
        self.assertEqual(r.json["data"][0]["max_model_len"], 500)
        self.assertIn("error", self.one.call("POST", "/sim/set", {"models": "tiny"}))


class Edges(MeanCase):
    """Events at the wrong time: ends of idle connections, statuses, 1xx heads."""
    arguments = ("--model", "tiny", "--decode-base-ms", "1", "--idle-close-ms", "50", "--interim", "2")

    def raw(self, length=None):
        """All that comes until the connection ends, for a request whose body may be incomplete."""
        body = json.dumps(chat(max_tokens=2)).encode()
        with socket.create_connection((HOST, self.one.port), LIMIT) as sock:
            sock.sendall(b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" %
                         (CHAT.encode(), length or len(body)) + (b"" if length else body))
            got = b""
            while True:
                data = sock.recv(65536)
                if not data:
                    return got
                got += data

    def test_ends_of_idle_connections(self):
        got = self.raw()
        self.assertTrue(got.startswith(b"HTTP/1.1 103 "), got)
        self.assertEqual((got.count(b"HTTP/1.1 102 "), got.count(b"HTTP/1.1 200 "), got.count(b"HTTP/1.1 408 ")), (1, 1, 0))
        self.again("--idle-ends", "408")
        self.assertEqual(self.raw().count(b"HTTP/1.1 408 "), 1)
        self.again("--idle-ends", "reset")
        with self.assertRaises(ConnectionResetError):
            self.raw()

    def test_a_status_before_the_body(self):
        self.fail_by("early", status=429, count=1)
        self.assertTrue(self.raw(length=100).startswith(b"HTTP/1.1 429 "))
