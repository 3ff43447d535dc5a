"""The side towards the engines, where sockets matter: connections that are used again, closed, reset, refused or not
accepted. Stories test the resulting decisions (tests/unit/proxy)."""

import json
import socket
import threading
import unittest

from lib import HOST, LIMIT, SSE_HEAD, Case, Cut, answer, chunk, closed_port, request, slow_ms, wait_for

CHAT = "/v1/chat/completions"


def chat(content="hi", **more):
    return json.dumps(dict({"model": "m", "messages": [{"role": "user", "content": content}]},
                           **more)).encode()


class Pool(Case):
    def test_a_connection_is_used_again(self):
        e = self.engine()
        r = self.router([e], "--other-paths", "pass")
        c = self.client(r)
        for i in range(30):
            self.assertEqual(c.ask("PUT" if i % 2 else "POST", "/a" if i % 2 else CHAT,
                                   chat()).status, 200)
        self.assertEqual({a.connection for a in e.requests}, {e.requests[0].connection})
        self.assertEqual(e.requests[-1].index, 29)
        self.assertEqual(r.metric("upstream_connects_total"), 1)
        self.assertEqual(r.metric("upstream_reused_total"), 29)

    def test_a_pooled_connection_that_the_engine_closed_is_replaced(self):
        """The engine closes when the next request comes: nothing was answered, so it is sent again,
        to the same replica."""
        e = self.engine()

        def handler(asked):
            asked.read_body()
            if asked.index > 0:
                asked.reset() if asked.path == "/reset" else asked.close()
            else:
                asked.send(answer(200, asked.body or b"ok"))
        e.handler = handler
        r = self.router([e], "--other-paths", "pass", "--retries-max", "0")
        for path in (CHAT, "/reset", "/a"):
            e.clear()
            self.assertEqual(self.client(r).ask("POST", path, chat()).status, 200)
            self.assertEqual(self.client(r).ask("POST", path, chat()).status, 200, path)
        self.assertEqual(r.metric("retries_total"), 0)
        self.assertEqual(r.metric("upstream_broken_total"), 0)


class Failures(Case):
    """Two replicas, one of them bad."""

    def setUp(self):
        super().setUp()
        self.bad = self.engine()
        self.good = self.engine()
        self.good.handler = lambda asked: (asked.read_body(),
                                           asked.send(answer(200, b"good " + asked.read_body())))

    def pair(self, *args, **how):
        return self.router([self.bad, self.good], "--other-paths", "pass", "--policy",
                           "round_robin", *args, **how)

    def all_good(self, r, n=10, path=CHAT, tried=True):
        """Whichever replica is chosen first, the client sees only good answers."""
        for i in range(n):
            body = chat("x" * i)
            got = self.client(r).ask("POST", path, body)
            self.assertEqual((got.status, got.body), (200, b"good " + body), path)
            self.assertEqual(got.get("x-grapevine-replica"), self.good.name)
        if tried:
            self.assertGreater(len(self.bad.requests), 0, "the bad one was never tried")
            self.assertGreater(r.metric("retries_total"), 0)
        r.quiet()

    def test_a_refused_connection_is_retried_at_another_replica(self):
        gone = "http://%s:%d" % (HOST, closed_port())
        r = self.router([gone, self.good], "--other-paths", "pass", "--policy", "round_robin")
        self.all_good(r, tried=False)
        self.all_good(r, path="/a", tried=False)

    def test_an_engine_that_dies_before_the_first_byte_is_replaced(self):
        for how in ("close", "reset"):
            self.bad.handler = lambda asked: (asked.read_body(), getattr(asked, how)())
            self.all_good(self.pair())

    def test_an_http_1_0_client_notices_a_cut_stream(self):
        """An HTTP/1.0 body ends with the connection: a proper end would make a cut answer look complete."""
        seen = threading.Event()

        def handler(asked):
            asked.read_body()
            asked.send(SSE_HEAD + chunk(b'data: {"text":"1"}\n\n'))
            seen.wait(LIMIT)
            asked.reset()
        self.bad.handler = self.good.handler = handler
        r = self.pair()
        c = self.client(r)
        c.send(request("POST", CHAT, chat(stream=True), version="1.0"))
        self.assertEqual(c.head().status, 200)
        c.reader.until(b"\n\n")
        seen.set()
        with self.assertRaises(ConnectionResetError):
            c.reader.to_end()

    def test_a_stream_that_dies_before_its_first_token_is_retried(self):
        def handler(asked):
            asked.read_body()
            asked.send(SSE_HEAD + chunk(b'data: {"choices":[{"delta":{"role":"assistant",'
                                        b'"content":""}}]}\n\n'))
            asked.reset()
        whole = b'data: {"text":"1"}\n\ndata: [DONE]\n\n'
        self.bad.handler = handler
        self.good.closes(SSE_HEAD + chunk(whole) + b"0\r\n\r\n")
        r = self.pair()
        for _ in range(4):
            self.assertEqual(self.client(r).ask("POST", CHAT, chat(stream=True)).body, whole)
        self.assertGreater(r.metric("retries_total"), 0)
        self.assertEqual(r.metric("answers_cut_total"), 0)

    def test_retries_keep_to_a_budget_when_all_replicas_fail(self):
        for e in (self.bad, self.good):
            e.replies(answer(503, b"{}"))
        r = self.pair("--retry-budget", "0.1", "--access-log", "all")
        c = self.client(r)
        limits = []
        for _ in range(200):
            a = c.ask("POST", CHAT, chat())
            self.assertEqual(a.status, 503)
            limits.append(a.all("x-grapevine-limit"))
        self.assertEqual(limits[0], [])  # both were asked
        self.assertEqual(limits[-1], ["retry-budget"])
        wait_for(lambda: "retry-budget" in [e["limit"] for e in r.events("request")], "it in the log")
        tried = len(self.bad.requests) + len(self.good.requests)
        self.assertLessEqual(tried, 200 + 20 + 0.1 * 200)
        self.assertGreater(tried, 200 + 20)
        self.assertGreater(r.metric("retry_budget_exhausted_total"), 0)


class Waiting(Case):
    """Time limits towards the engines."""

    def test_connections_to_engines_are_kept_alive(self):
        """A machine that loses its power closes nothing: only the kernel's probes find out."""
        e = self.engine()
        e.handler = lambda asked: (asked.read_body(), asked.wait_gone())
        r = self.router([e])
        c = self.client(r)
        c.send(request("POST", CHAT, chat()))
        e.wait_request()
        ours = e.requests[0].sock.getpeername()[1]

        def timer():  # the timer at the router's end, once all its bytes are acknowledged
            with open("/proc/net/tcp") as f:
                rows = [line.split() for line in f.readlines()[1:]]
            return [row[5][:2] for row in rows
                    if [int(end.rpartition(":")[2], 16) for end in row[1:3]] == [ours, e.port]]
        wait_for(lambda: timer() == ["02"], "the keep-alive timer")

    def test_a_stalled_stream_is_cut(self):
        e = self.engine()

        def handler(asked):
            asked.read_body()
            asked.send(SSE_HEAD + chunk(b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n'))
            asked.wait_gone()
        e.handler = handler
        r = self.router([e], "--upstream-idle-timeout", "200ms")
        c = self.client(r)
        c.send(request("POST", CHAT, chat(stream=True)))
        self.assertEqual(c.head().status, 200)
        with self.assertRaises((Cut, ConnectionResetError)):
            c.reader.chunked()
        self.assertTrue(e.requests[0].gone.wait(LIMIT))
        r.quiet()

    def test_a_connection_that_is_not_accepted_is_tried_elsewhere(self):
        full = socket.socket()  # a backlog of 0 that is full: connecting hangs
        full.bind((HOST, 0))
        full.listen(0)
        held = []
        for _ in range(3):
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex(full.getsockname())
            held.append(s)
        good = self.engine()
        r = self.router(["http://%s:%d" % full.getsockname(), good], "--policy", "round_robin",
                        "--upstream-connect-timeout", slow_ms(500), "--health-timeout", slow_ms(500),
                        "--health-failures", "100")
        for _ in range(4):
            self.assertEqual(self.client(r).ask("POST", CHAT, chat()).status, 200)
        for s in held + [full]:
            s.close()


if __name__ == "__main__":
    unittest.main()
