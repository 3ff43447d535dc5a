"""The side towards the engines: pooled connections, retries, timeouts, answers that are wrong."""

import json
import socket
import threading
import time
import unittest

from lib import (HOST, LIMIT, SLOW, SSE_HEAD, Case, Cut, answer, answer_json, chunk, closed_port, request, slow_ms,
                 wait_for)

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

    def test_clients_share_pooled_connections(self):
        e = self.engine()
        r = self.router([e], "--other-paths", "pass")
        for _ in range(10):
            self.assertEqual(r.get("/a").status, 200)
        self.assertEqual(len(e.work_connections), 1)

    def test_an_idle_connection_is_retired_before_the_engine_would_close_it(self):
        e = self.engine()
        r = self.router([e], "--other-paths", "pass", "--upstream-keepalive", "500ms")
        r.get("/a")
        number = e.requests[0].connection
        wait_for(lambda: [x for x in e.idle_closed if x[0] == number], "the idle connection closed",
                 5)
        idle = [t for n, t in e.idle_closed if n == number][0]
        self.assertGreater(idle, 0.4)
        self.assertEqual(r.get("/a").status, 200)
        self.assertNotEqual(e.requests[1].connection, number)

    def test_without_pooling_each_request_has_its_connection(self):
        e = self.engine()
        r = self.router([e], "--other-paths", "pass", "--upstream-keepalive", "0")
        for _ in range(3):
            self.assertEqual(r.get("/a").status, 200)
        self.assertEqual(len(e.work_connections), 3)

    def test_a_pooled_connection_that_the_engine_closed_is_replaced_in_silence(self):
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

    def test_an_idle_close_far_away_crosses_a_request(self):
        """The engine's last word to an idle connection, an end or a 408, comes a round trip after the request. What is
        on the way there answers TCP itself, as load balancers and sidecars do: probes say how long the way is."""
        away_s = 0.16 * SLOW
        e = self.engine()
        words = {"/v1/completions": lambda asked: asked.close(), "/v1/embeddings": lambda asked: asked.reset(),
                 CHAT: lambda asked: (asked.send(answer(408, b"", reason="Request Timeout")), asked.close())}
        probe = e._probe
        e._probe = lambda asked: (time.sleep(away_s), probe(asked))

        def handler(asked):
            asked.read_body()
            time.sleep(away_s)
            words[asked.path](asked) if asked.index > 0 else asked.send(answer(200, asked.body))
        e.handler = handler
        r = self.router([e])
        got = []

        def ask(path):
            c = self.client(r)
            got.extend((path, c.ask("POST", path, chat(prompt="x", input="x")).status) for _ in range(4))
        asking = [threading.Thread(target=ask, args=(path,)) for path in words for _ in range(2)]
        for t in asking:
            t.start()
        for t in asking:
            t.join()
        self.assertEqual([x for x in got if x[1] != 200], [])
        self.assertEqual(len(got), 24)
        self.assertGreater(r.metric("upstream_stale_total"), 0)
        self.assertEqual(r.metric("upstream_broken_total"), 0)

    def test_an_engine_that_closes_after_each_answer_is_fine(self):
        for head in (b"Connection: close\r\n", b""):
            e = self.engine()
            e.closes(b"HTTP/1.1 200 OK\r\n" + head + b"Content-Length: 2\r\n\r\nok")
            r = self.router([e], "--other-paths", "pass")
            c = self.client(r)
            for _ in range(10):
                self.assertEqual(c.ask("POST", CHAT, chat()).body, b"ok")

    def test_bytes_behind_an_answer_spoil_the_connection_only(self):
        e = self.engine()
        e.replies(answer(200, b"ok") + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        r = self.router([e], "--other-paths", "pass")
        c = self.client(r)
        for _ in range(5):
            self.assertEqual(c.ask("GET", "/a").body, b"ok")

    def test_an_unasked_answer_on_an_idle_connection_is_never_taken_for_one(self):
        e = self.engine()

        def handler(asked):
            asked.send(answer(200, asked.path.encode()))
            if asked.path == "/first":
                time.sleep(0.1)
                asked.send(answer(200, b"evil"))
        e.handler = handler
        r = self.router([e], "--other-paths", "pass")
        self.assertEqual(r.get("/first").body, b"/first")
        wait_for(lambda: {n for n, _ in e.idle_closed} & e.work_connections, "the router to close it")
        self.assertEqual(r.get("/second").body, b"/second")

    def test_upstream_connections_are_limited(self):
        e = self.engine()
        hold = []

        def handler(asked):
            asked.read_body()
            hold.append(asked)
            asked.wait_gone()
        e.handler = handler
        r = self.router([e], "--other-paths", "pass", "--upstream-connections-max", "2",
                        "--queue-max", "0")
        clients = [self.client(r) for _ in range(2)]
        for c in clients:
            c.send(request("GET", "/a"))
        wait_for(lambda: len(hold) == 2, "two at the engine")
        for _ in range(10):  # and the replica is not thought dead for that
            got = r.get("/a")
            self.assertEqual((got.status, got.get("x-grapevine-limit")),
                             (429, "upstream-connections-max"))
        self.assertEqual(r.metrics()['grapevine_replica_up{replica="%s"}' % e.name], 1)
        self.assertEqual(r.metric('requests_refused_total{reason="queue_full"}'), 10)


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

    def test_a_refused_port_means_another_replica(self):
        gone = "http://%s:%d" % (HOST, closed_port())
        r = self.router([gone, self.good], "--other-paths", "pass", "--policy", "round_robin")
        self.all_good(r, tried=False)
        self.all_good(r, path="/a", tried=False)

    def test_a_port_that_begins_to_refuse_means_another_replica(self):
        r = self.pair("--health-interval", "60s")
        self.bad.refuse()
        self.all_good(r, tried=False)
        self.assertGreater(r.metric("upstream_connect_failures_total"), 0)

    def test_an_engine_that_dies_before_the_first_byte_is_replaced(self):
        for how in ("close", "reset"):
            self.bad.handler = lambda asked: (asked.read_body(), getattr(asked, how)())
            self.all_good(self.pair())

    def test_heads_of_engines_have_limits_of_their_own(self):
        """Those of clients are a setting; an engine may well answer more than they may ask."""
        self.bad.replies(answer(200, b"ok", [("X-%d" % i, "v" * 60) for i in range(200)]))
        r = self.router([self.bad], "--head-bytes-max", "1KiB", "--headers-max", "8")
        got = self.client(r).ask("POST", CHAT, chat())
        self.assertEqual((got.status, got.get("x-199")), (200, "v" * 60))

    def test_an_engine_that_dies_in_the_head_is_replaced(self):
        self.bad.closes(b"HTTP/1.1 200 OK\r\nContent-Le")
        self.all_good(self.pair())

    def test_an_engine_that_dies_while_it_is_sent_to_is_replaced(self):
        self.bad.handler = lambda asked: asked.reset()
        r = self.pair()
        for i in range(6):
            body = b"y" * 200000
            got = self.client(r).ask("PUT", "/a", body)
            self.assertEqual((got.status, got.body), (200, b"good " + body))
        r.quiet()

    def test_what_may_not_be_done_twice_is_sent_once(self):
        """A POST that no engine API has may have been carried out when the connection broke."""
        for e in (self.bad, self.good):
            e.handler = lambda asked: (asked.read_body(), asked.reset())
        r = self.pair()
        self.assertEqual(self.client(r).ask("POST", "/a", b"pay").status, 502)
        self.assertEqual(len(self.bad.requests) + len(self.good.requests), 1)
        self.assertEqual(self.client(r).ask("DELETE", "/a").status, 502)
        self.assertEqual(len(self.bad.requests) + len(self.good.requests), 3)
        self.assertEqual(r.metric("retries_total"), 1)
        r.quiet()

    def test_what_was_not_sent_yet_may_always_go_elsewhere(self):
        r = self.pair("--health-interval", "60s")
        self.bad.refuse()
        self.all_good(r, n=4, path="/a", tried=False)

    def test_a_retry_that_finds_nobody_is_no_retry(self):
        r = self.router([self.bad], "--other-paths", "pass", "--health-interval", "60s")
        self.bad.handler = lambda asked: (asked.read_body(), asked.close())
        self.assertEqual(self.client(r).ask("POST", CHAT, chat()).status, 502)
        self.assertEqual(r.metric("retries_total"), 0)

    def test_a_busy_engine_is_passed_over(self):
        self.bad.replies(answer_json({"error": "queue full"}, 503))
        r = self.pair()
        self.all_good(r)
        self.assertEqual(r.metrics()['grapevine_replica_up{replica="%s"}' % self.bad.name], 1)

    def test_when_all_are_busy_the_engines_own_answer_comes(self):
        for e in (self.bad, self.good):
            e.replies(answer(503, b'{"object":"error","message":"queue full"}',
                             [("X-Own", "yes"), ("Retry-After", "7")], "Busy"))
        r = self.pair()
        for _ in range(4):
            got = self.client(r).ask("POST", CHAT, chat())
            self.assertEqual(got.start, "HTTP/1.1 503 Busy")
            self.assertEqual(got.body, b'{"object":"error","message":"queue full"}')
            self.assertEqual((got.get("x-own"), got.all("retry-after")), ("yes", ["7"]))
        self.assertEqual(len(self.bad.requests) + len(self.good.requests), 8)
        r.quiet()

    def test_retries_end_and_the_client_hears_502(self):
        for e in (self.bad, self.good):
            e.handler = lambda asked: (asked.read_body(), asked.close())
        r = self.pair("--retries-max", "1")
        got = self.client(r).ask("POST", CHAT, chat())
        self.assertEqual(got.status, 502)
        self.assertIn("message", got.json["error"])
        self.assertEqual(len(self.bad.requests) + len(self.good.requests), 2)
        r.quiet()

    def test_no_retry_when_it_is_turned_off(self):
        for e in (self.bad, self.good):
            e.handler = lambda asked: (asked.read_body(), asked.close())
        r = self.pair("--retries-max", "0")
        self.assertEqual(self.client(r).ask("POST", CHAT, chat()).status, 502)
        self.assertEqual(len(self.bad.requests) + len(self.good.requests), 1)

    def test_a_stream_that_dies_is_cut_and_has_no_proper_end(self):
        for how in ("close", "reset"):
            def handler(asked):
                asked.read_body()
                asked.send(SSE_HEAD + chunk(b'data: {"text":"1"}\n\n'))
                time.sleep(0.05)
                getattr(asked, how)()
            self.bad.handler = self.good.handler = handler
            r = self.pair()
            c = self.client(r)
            c.send(request("POST", CHAT, chat(stream=True)))
            self.assertEqual(c.head().status, 200)
            with self.assertRaises((Cut, ConnectionResetError)):
                c.reader.chunked()
            self.assertIn(b'data: {"text":"1"}\n\n', c.reader.log + c.reader.rest)
            self.assertNotIn(b"0\r\n\r\n", c.reader.log + c.reader.rest)
            self.assertEqual(r.metric("retries_total"), 0)
            r.quiet()

    def test_a_body_with_a_length_that_dies_is_cut(self):
        def handler(asked):
            asked.read_body()
            asked.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            asked.close()
        self.bad.handler = self.good.handler = handler
        r = self.pair()
        c = self.client(r)
        c.send(request("POST", CHAT, chat()))
        try:
            self.assertEqual(c.read().status, 502)  # nothing had gone out yet
        except Cut:
            pass
        r.quiet()

    def test_an_http_1_0_client_notices_a_cut_stream(self):
        """Its body ends with the connection: a proper end there would pass for a whole answer."""
        def handler(asked):
            asked.read_body()
            asked.send(SSE_HEAD + chunk(b'data: {"text":"1"}\n\n'))
            time.sleep(0.1)
            asked.reset()
        self.bad.handler = self.good.handler = handler
        r = self.pair()
        c = self.client(r)
        c.send(request("POST", CHAT, chat(stream=True), version="1.0"))
        self.assertEqual(c.head().status, 200)
        with self.assertRaises(ConnectionResetError):
            c.reader.to_end()

    def test_malformed_answers_are_502_and_never_reach_the_client(self):
        cases = {
            "not HTTP": b"SSH-2.0-OpenSSH\r\n\r\n",
            "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            "both framings": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n"
                             b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "bad status": b"HTTP/1.1 xyz OK\r\nContent-Length: 0\r\n\r\n",
            "bad version": b"HTTP/3.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "bare LF": b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
            "space before colon": b"HTTP/1.1 200 OK\r\nContent-Length : 0\r\n\r\n",
            "NUL": b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n",
            "unknown coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            "switching protocols": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
            "an endless head": b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200000 + b"\r\n\r\n",
            "a bad first chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "a good chunk and a bad one in one packet":
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n",
        }
        for name, data in cases.items():
            with self.subTest(name):
                e = self.engine()
                e.replies(data)
                r = self.router([e], "--other-paths", "pass")
                got = self.client(r).ask("POST", CHAT, chat())
                self.assertEqual(got.status, 502, got)
                self.assertEqual(r.get("/health").status, 200)
                r.stop()

    def test_malformed_answers_are_replaced_by_those_of_another(self):
        for data in (b"nonsense\r\n\r\n",
                     b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n"):
            self.bad.replies(data)
            self.bad.clear()
            r = self.pair()
            self.all_good(r)
            self.all_good(r, 2, path="/a", tried=False)  # while it is backing off

    def test_a_malformed_chunk_in_the_middle_cuts_the_answer(self):
        def handler(asked):
            asked.read_body()
            asked.send(SSE_HEAD + chunk(b'data: {"text":"1"}\n\n'))
            time.sleep(0.05)
            asked.send(b"nonsense\r\n")
        self.bad.handler = self.good.handler = handler
        r = self.pair()
        c = self.client(r)
        c.send(request("POST", CHAT, chat(stream=True)))
        c.head()
        with self.assertRaises((Cut, ConnectionResetError)):
            c.reader.chunked()

    def test_a_large_streamed_upload_is_not_sent_twice(self):
        """Beyond what is kept for a retry the failure is reported instead."""
        def handler(asked):
            asked.reader.take(600000)
            asked.reset()
        self.bad.handler = self.good.handler = handler
        r = self.pair()
        c = self.client(r)
        try:
            c.send(request("POST", "/upload", b"x" * 1000000))
            got = c.read()
            self.assertEqual(got.status, 502)
        except (Cut, OSError):
            pass
        self.assertEqual(len(self.bad.requests) + len(self.good.requests), 1)
        r.quiet()


class Waiting(Case):
    """Time limits towards the engines."""

    def test_a_first_byte_that_does_not_come_is_504(self):
        e = self.engine()
        e.handler = lambda asked: (asked.read_body(), asked.wait_gone())
        r = self.router([e], "--other-paths", "pass", "--upstream-first-token-timeout", "200ms")
        for path, body in ((CHAT, chat(stream=True)), (CHAT, b"no JSON"), ("/tokenize", chat()),
                           ("/a", chat())):
            got = self.client(r).ask("POST", path, body)
            self.assertEqual(got.status, 504, got)
        self.assertEqual(r.metric("upstream_timeouts_total"), 4)
        r.quiet()

    def test_a_whole_answer_outlives_the_first_byte_limit(self):
        """Its first byte comes with its last, and generating takes as long as it takes."""
        sim = self.sim("--model", "m")
        r = self.router([sim], "--upstream-first-token-timeout", "300ms")
        wait_for(lambda: r.events("replica_up"), "the engine up")
        hi = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        for path, body, status in ((CHAT, hi, 200),
                                   ("/v1/completions", {"model": "m", "prompt": "hi",
                                                        "stream": False}, 200),
                                   (CHAT, dict(hi, stream=True), 504)):
            sim.call("POST", "/sim/fail", {"mode": "slow", "delay_ms": 1000, "count": 1})
            got = self.client(r).post(path, body)
            self.assertEqual(got.status, status, got)
        self.assertEqual(r.metric("upstream_timeouts_total"), 1)
        r.quiet()

    def test_a_whole_answer_has_a_limit_of_its_own(self):
        e = self.engine()
        e.handler = lambda asked: (asked.read_body(), asked.wait_gone())
        r = self.router([e], "--upstream-whole-answer-timeout", "200ms")
        got = self.client(r).ask("POST", CHAT, chat())
        self.assertEqual(got.status, 504, got)
        self.assertEqual(r.metric("upstream_timeouts_total"), 1)
        r.quiet()

    def test_a_client_that_leaves_ends_a_whole_answer_at_its_engine(self):
        e = self.engine()
        e.handler = lambda asked: (asked.read_body(), asked.wait_gone())
        r = self.router([e], "--upstream-first-token-timeout", "100ms")
        c = self.client(r)
        c.send(request("POST", CHAT, chat()))
        e.wait_request()
        c.close()
        self.assertTrue(e.requests[0].gone.wait(LIMIT))
        r.quiet()

    def test_connections_to_engines_are_kept_alive(self):
        """A machine that loses its power closes nothing: only the kernel's probes find out."""
        e = self.engine()
        e.handler = lambda asked: (asked.read_body(), asked.wait_gone())
        r = self.router([e])
        c = self.client(r)
        c.send(request("POST", CHAT, chat()))
        e.wait_request()
        ours = e.requests[0].sock.getpeername()[1]

        def timer():  # of the router's end, once all that it sent is acknowledged
            with open("/proc/net/tcp") as f:
                rows = [line.split() for line in f.readlines()[1:]]
            return [row[5][:2] for row in rows
                    if [int(end.rpartition(":")[2], 16) for end in row[1:3]] == [ours, e.port]]
        wait_for(lambda: timer() == ["02"], "the keep-alive timer")

    def slow_and_good(self):
        slow, good = self.engine(), self.engine()
        slow.handler = lambda asked: (asked.read_body(), asked.wait_gone())
        r = self.router([slow, good], "--other-paths", "pass", "--policy", "round_robin",
                        "--upstream-first-token-timeout", slow_ms(600))
        return slow, good, r

    def test_a_first_byte_that_does_not_come_can_come_from_another(self):
        slow, _, r = self.slow_and_good()
        for _ in range(40):  # equal loads are drawn among
            self.assertEqual(self.client(r).ask("GET", "/a").status, 200)
            if slow.requests:
                break
        self.assertGreater(len(slow.requests), 0)
        r.quiet()

    def test_a_prompt_that_an_engine_sits_on_goes_elsewhere_once(self):
        """It shows no sign of work."""
        slow, good, r = self.slow_and_good()
        seen = [self.client(r).ask("POST", CHAT, chat(stream=True)).status for _ in range(4)]
        self.assertEqual(seen, [200] * 4)
        self.assertGreater(len(slow.requests), 0)
        self.assertEqual(len(good.requests), 4)
        self.assertEqual(r.metric("retries_total"), len(slow.requests))
        self.assertEqual(r.metric("upstream_timeouts_total"), len(slow.requests))
        self.assertEqual(r.metric("upstream_broken_total"), 0)  # timeouts are not counted twice
        r.quiet()

    def test_a_stream_that_stands_still_is_cut(self):
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

    def test_a_slow_stream_outlives_the_first_byte_limit(self):
        e = self.engine()

        def handler(asked):
            asked.read_body()
            asked.send(SSE_HEAD)
            for _ in range(5):
                time.sleep(0.4 * SLOW)
                asked.send(chunk(b'data: {"text":"1"}\n\n'))
            asked.send(chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        e.handler = handler
        r = self.router([e], "--upstream-first-token-timeout", slow_ms(1500), "--upstream-idle-timeout",
                        "0")
        got = self.client(r).ask("POST", CHAT, chat(stream=True))
        self.assertEqual(got.body, b'data: {"text":"1"}\n\n' * 5 + b"data: [DONE]\n\n")

    def test_a_slow_upload_is_no_slow_engine(self):
        """The limit on the first byte runs from the end of the request, as far as the client is the
        one who is slow."""
        e = self.engine()
        r = self.router([e], "--other-paths", "pass", "--upstream-first-token-timeout", slow_ms(1500))
        c = self.client(r)
        c.send(request("POST", "/upload", None, [("Content-Length", "10")]))
        for _ in range(10):
            time.sleep(0.2 * SLOW)
            c.send(b"x")
        self.assertEqual(c.read().status, 200)

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
