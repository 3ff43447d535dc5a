"""The end of requests: when buffers are freed, which answers are cut, and the log and counters."""

import json
import re
import threading
import time
import unittest

from lib import LIMIT, SSE_HEAD, Case, Cut, answer, answer_json, chunk, request, slow_ms, wait_for

CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"
RESPONSES = "/v1/responses"
DONE = b"data: [DONE]\n\n"


def chat(content="hi", **more):
    return json.dumps(dict({"model": "m", "messages": [{"role": "user", "content": content}]},
                           **more)).encode()


class Memory(Case):
    def test_a_prompt_is_freed_when_its_answer_begins(self):
        """The prompt is not needed from then on, however long the stream lasts."""
        e = self.engine()
        done = []

        def handler(asked):
            asked.read_body()
            asked.send(SSE_HEAD + chunk(b'data: {"text":"1"}\n\n'))
            wait_for(lambda: done, "the test")
            asked.send(chunk(b'data: {"text":"2"}\n\n' + DONE) + b"0\r\n\r\n")
        e.handler = handler
        r = self.router([e])
        c = self.client(r)
        c.send(request("POST", CHAT, chat("x" * 400000, stream=True)))
        self.assertEqual(c.head().status, 200)
        c.reader.until(b'data: {"text":"1"}\n\n\r\n')
        self.assertEqual(r.metric("requests_open"), 2)  # this request and the scrape
        self.assertEqual(r.metric("body_bytes_held"), 0)
        done.append(1)
        self.assertEqual(c.reader.chunked()[0], b'data: {"text":"2"}\n\n' + DONE)
        self.assertEqual(c.ask("POST", CHAT, chat()).status, 200)
        r.quiet()

    def test_an_answer_that_begins_too_early_frees_the_prompt_at_its_end(self):
        e = self.engine(receive_buffer=4096)
        go = []

        def handler(asked):
            asked.send(SSE_HEAD + chunk(b'data: {"text":"1"}\n\n'))
            wait_for(lambda: go, "the test")
            asked.read_body()
            asked.send(chunk(b'data: {"text":"2"}\n\n'))
            wait_for(lambda: len(go) > 1, "the test")
            asked.send(chunk(DONE) + b"0\r\n\r\n")
        e.handler = handler
        r = self.router([e])
        c = self.client(r)
        c.send(request("POST", CHAT, chat("x" * 20000000, stream=True)))
        self.assertEqual(c.head().status, 200)
        c.reader.until(b'data: {"text":"1"}\n\n\r\n')
        self.assertGreater(r.metric("body_bytes_held"), 1000000)
        go.append(1)
        c.reader.until(b'data: {"text":"2"}\n\n\r\n')
        wait_for(lambda: r.metric("body_bytes_held") == 0, "all let go")
        go.append(1)
        c.reader.chunked()
        r.quiet()


class Cuts(Case):
    def ended(self, r, end):
        """The access log line that says so."""
        line = wait_for(lambda: [e for e in r.events("request") if e["end"] == end],
                        "a request that ended by " + end)
        self.assertEqual(len(line), 1)
        return line[0]

    def cut(self, r, reason):
        wait_for(lambda: r.metric('answers_cut_total{reason="%s"}' % reason) == 1, reason)

    def stream(self, handler, *args, **how):
        e = self.engine()
        e.handler = handler
        r = self.router([e], "--access-log", "all", *args)
        c = self.client(r, **how)
        c.send(request("POST", CHAT, chat(stream=True)))
        self.assertEqual(c.head().status, 200)
        return e, r, c

    def flood(self, asked):
        asked.read_body()
        asked.send(SSE_HEAD)
        for _ in range(4000):
            asked.send(chunk(b"y" * 16384))

    def test_a_client_is_cut_at_once_if_memory_runs_out(self):
        """The kernel has a part of the answer and there is no memory for the rest: the connection is useless, and
        must not wait for a time limit of a minute."""
        _, r, c = self.stream(self.flood, "--buffered-bytes-max", "64KiB", "--body-bytes-max", "32KiB",
                              "--client-write-timeout", "60s", receive_buffer=4096)
        self.ended(r, "no_memory")
        self.cut(r, "no_memory")
        began = time.monotonic()
        with self.assertRaises((Cut, ConnectionResetError)):
            c.reader.chunked()
        self.assertLess(time.monotonic() - began, 40)
        r.quiet()
        wait_for(lambda: r.metric("connections_open") == 1, "closed")

    def test_tokens_sent_before_an_engine_failed_reach_a_slow_client(self):
        """The client has paid for these tokens, and gets them before it learns that no more will come."""
        parts = 12

        def handler(asked):
            asked.read_body()
            asked.send(SSE_HEAD)
            for i in range(parts):
                asked.send(chunk(b"%02d" % i + b"y" * 16382))
            asked.close()
        _, r, c = self.stream(handler, receive_buffer=4096)
        self.cut(r, "engine_failed")
        got = bytearray()
        with self.assertRaises(Cut):  # a proper FIN, after all of it
            c.reader.chunked(got.extend)
        self.assertEqual(len(got), parts * 16384)
        r.quiet()


TOKEN = b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n'


class Streams(Case):
    """Streams that do not end as their API says: the results for client, breaker and metrics."""

    def start(self, *chunks, end=b"0\r\n\r\n", probed=slow_ms(3000)):
        """The engine ends the stream, or with end=None resets the connection, once the client has all chunks: a reset
        overtakes chunks, and a request whose client got nothing is retried."""
        self.e = self.engine()
        self.length, self.seen = sum(map(len, chunks)), threading.Event()

        def handler(asked):
            asked.read_body()
            asked.send(SSE_HEAD)
            for x in chunks:
                asked.send(chunk(x))
            self.seen.wait(LIMIT)
            if end is not None:
                asked.send(end)
            else:
                asked.reset()
        self.e.handler = handler
        # On a slow machine a probe may succeed between two failures, which are then not in a row. If usage is asked
        # for, half an event waits for its other half, which depends on whether the model list came before.
        return self.router([self.e], "--health-interval", probed, "--ask-usage", "off")

    def read(self, r):
        c = self.client(r)
        self.seen.clear()
        c.send(request("POST", CHAT, chat(stream=True)))
        self.assertEqual(c.head().status, 200)
        got = bytearray()

        def take(data):
            got.extend(data)
            if len(got) >= self.length:
                self.seen.set()
        with self.assertRaises(Cut):  # no last chunk, and a proper FIN: all of it was sent
            c.reader.chunked(take)
        return bytes(got)

    def errors(self, r, kind):
        return r.metric('upstream_errors_total{replica="%s",kind="%s"}' % (self.e.name, kind))

    def test_a_broken_stream_ends_with_an_error_event(self):
        r = self.start(TOKEN, TOKEN[:20], end=None)
        got = self.read(r)
        self.assertTrue(got.startswith(TOKEN + TOKEN[:20]))
        events = got.decode().split("\n\n")
        self.assertEqual(json.loads(events[2][6:])["error"]["code"], 503)
        self.assertEqual(events[3:], [""])
        self.assertEqual(self.errors(r, "broken"), 1)

    def test_an_end_without_the_terminal_event_is_a_failure(self):
        r = self.start(TOKEN, probed="60s")
        for n in range(1, 6):
            events = self.read(r).decode().split("\n\n")
            self.assertEqual(json.loads(events[1][6:])["error"]["code"], 503)
            self.assertEqual(self.errors(r, "no_terminal"), n)
        r.wait_event("replica_down")


class Aborted(Case):
    def start(self, *options):
        """Two engines that crawl, so that no answer ends before all are under way."""
        self.sims = [self.sim(*options) for _ in range(2)]
        for sim in self.sims:
            sim.call("POST", "/sim/fail", {"mode": "crawl", "factor": 50})
        self.r = self.router([sim.url for sim in self.sims], "--policy", "round_robin", "--access-log", "all")
        self.r.wait_listed(2)

    def abort_half(self):
        """Each engine has two requests. One engine aborts its two, and both engines work at normal speed from then
        on."""
        def running():
            return [sim.call("GET", "/sim/stats")["running"] for sim in self.sims]
        wait_for(lambda: running() == [2, 2], "all to run")
        for sim, mode in zip(self.sims, ("abort", "none")):
            sim.call("POST", "/sim/fail", {"mode": mode})

    def asks(self, stream, path=CHAT):
        fields = {"model": "sim", "stream": stream, "ignore_eos": True}
        if path == RESPONSES:
            body = json.dumps(dict(fields, input="x", max_output_tokens=150)).encode()
        else:
            body = chat(max_tokens=150, **fields)
        return self.client(self.r).send(request("POST", path, body, [("Content-Type", "application/json")]))

    def test_requests_that_an_engine_aborts_are_retried_at_another(self):
        for engine in ("vllm", "sglang"):
            with self.subTest(engine):
                self.start("--engine", engine)
                asked = [self.asks(stream) for stream in (True, True, False, False)]
                streams = [c.head() for c in asked[:2]]
                self.assertEqual([head.status for head in streams], [200, 200])
                self.abort_half()
                ends = sorted(re.findall(r'"finish_reason": ?"(\w+)"', c.reader.chunked()[0].decode())[-1]
                              for c in asked[:2])
                self.assertEqual(ends, ["abort", "length"])
                for c in asked[2:]:
                    got = c.read()
                    self.assertEqual((got.status, got.json["choices"][0]["finish_reason"]), (200, "length"))
                    self.assertEqual(got.json["usage"]["completion_tokens"], 150)
                errors = 'upstream_errors_total{replica="%s",kind="aborted"}'
                self.assertEqual([self.r.metric(errors % s.name) for s in self.sims], [2, 0])
                self.assertEqual(self.r.metric('retries_total{reason="aborted"}'), 1)
                said = lambda r=self.r: [e["reason"] for e in r.events("request") if e["path"] == CHAT]  # noqa: E731
                wait_for(lambda: len(said()) == 4, "four lines in the log")  # noqa: B023
                self.assertEqual(sorted(said()), ["", "", "", "aborted"])

    def test_aborts_are_detected_in_apis_without_an_abort_reason(self):
        """A message of vLLM without a stop reason passed for complete."""
        for engine, path, kind in (("vllm", MESSAGES, "aborted"), ("sglang", RESPONSES, "error_event")):
            with self.subTest(path):
                self.start("--engine", engine)
                asked = [self.asks(stream, path) for stream in (True, True, False, False)]
                for c in asked[:2]:
                    self.assertEqual(c.head().status, 200)
                self.abort_half()
                for c in asked[:2]:
                    c.reader.chunked()
                whole = [c.read().json for c in asked[2:]]
                if path == MESSAGES:  # the other one answered
                    self.assertEqual([answer["stop_reason"] for answer in whole], ["max_tokens"] * 2)
                else:
                    self.assertEqual(sorted(answer["status"] for answer in whole), ["failed", "incomplete"])
                errors = 'upstream_errors_total{replica="%s",kind="%s"}'
                self.assertEqual([self.r.metric(errors % (s.name, kind)) for s in self.sims], [2, 0])


class Counted(Case):
    def test_each_answer_of_the_routers_own_has_a_reason(self):
        e = self.engine()
        r = self.router([e], "--client-head-timeout", "200ms", "--body-bytes-max", "10KiB")

        def refused(reason):
            return r.metric('requests_refused_total{reason="%s"}' % reason)

        def invalid(reason):
            return r.metric('requests_invalid_total{reason="%s"}' % reason)
        self.assertEqual(self.client(r).send("GET / HTTP/1.1\r\nHost: a\r\n").read().status, 408)
        self.assertEqual(refused("timeout"), 1)
        self.assertEqual(self.client(r).send("nonsense\r\n\r\n").read().status, 400)
        self.assertEqual(invalid("malformed"), 1)
        self.assertEqual(self.client(r).ask("POST", CHAT, chat("x" * 20000)).status, 413)
        self.assertEqual(refused("body_limit"), 1)
        self.assertEqual(r.get("/v1/models/none").status, 404)
        self.assertEqual(self.client(r).ask("POST", CHAT, b'{"model":"none"}').status, 404)
        self.assertEqual(invalid("model"), 2)
        self.assertEqual(r.get("/none").status, 404)
        self.assertEqual(invalid("path"), 1)
        for path in ("/v1/responses", CHAT, "/v1/models", "/"):
            got = self.client(r).ask("GET", path, None, [("Connection", "Upgrade"), ("Upgrade", "websocket")])
            self.assertEqual((got.status, got.get("upgrade"), got.get("connection")), (426, "HTTP/1.1", "upgrade"), path)
        self.assertEqual(invalid("upgrade"), 4)
        self.assertEqual(self.client(r).send("BREW / HTTP/1.1\r\nHost: a\r\n\r\n").read().status, 501)
        self.assertEqual([self.client(r).ask(method, "/").status for method in ("GET", "HEAD")], [200, 200])
        self.assertEqual(self.client(r).ask("GET", "/sleep").status, 403)
        self.assertEqual(refused("control"), 1)
        e.closes(b"")
        self.assertEqual(self.client(r).ask("POST", CHAT, chat()).status, 502)
        self.assertEqual(refused("bad_gateway"), 1)
        # No line in the log, and nothing failed, for what clients did wrong.
        self.assertEqual([x["status"] for x in r.events("request")], [408, 413, 403, 502])
        self.assertEqual(r.metric('requests_failed_total{reason="status_5xx"}'), 1)
        self.assertEqual(r.admin("GET", "/none").status, 404)  # no request of a client
        self.assertEqual(invalid("path"), 1)


class StoredResponses(Case):
    """A router asks the replicas for an id that it does not know, at little cost."""

    def none_has_it(self, body):
        engines = [self.engine() for _ in range(4)]
        for e in engines:
            e.replies(answer_json({"error": {"message": "not found"}}, 404))
        r = self.router(engines, "--retries-max", "1", "--body-bytes-max", "8MiB")
        got = self.client(r).ask("POST", "/v1/responses", body)
        self.assertEqual(got.status, 404)
        self.assertEqual(got.json["error"]["message"], "not found")
        r.quiet()
        return sorted(q.method + " " + q.path for e in engines for q in e.requests), r

    def test_asking_replicas_for_a_stored_response_adds_no_belief(self):
        _, r = self.none_has_it(json.dumps(
            {"model": "m", "input": "x" * 100000, "previous_response_id": "resp_1"}).encode())
        self.assertEqual(r.metric("index_entries"), 0)


if __name__ == "__main__":
    unittest.main()
