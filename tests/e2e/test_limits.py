"""Slow, many and large clients: which limit bites, and what it answers."""

import time
import unittest

from lib import Case, Client, Cut, Engine, Router, answer, chunk, chunked, request, wait_for


class Limits(Case):
    """Slow, many and large clients."""

    @classmethod
    def set_up(cls):
        cls.e = cls.shared(Engine())
        cls.r = cls.shared(Router(
            [cls.e], "--other-paths", "pass", "--client-head-timeout", "300ms",
            "--client-body-timeout", "600ms",
            "--client-write-timeout", "400ms", "--head-bytes-max", "2KiB", "--headers-max", "20"))

    def setUp(self):
        super().setUp()
        self.e.clear()
        self.e.handler = lambda asked: (asked.read_body(), asked.send(answer(200, b"ok")))

    def test_a_head_that_does_not_come_to_its_end_gets_408(self):
        c = self.client(self.r)
        c.send(b"GET /a HTTP/1.1\r\nHo")
        self.assertEqual(c.read().status, 408)
        self.assertTrue(c.is_closed())

    def test_a_head_that_trickles_gets_408_although_bytes_come(self):
        c = self.client(self.r)
        data = b"GET /a HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 1000
        start = time.monotonic()
        for i in range(len(data)):
            c.send(data[i:i + 1])
            if not c.is_open():
                break
        self.assertEqual(c.read().status, 408)
        self.assertLess(time.monotonic() - start, 5)

    def test_a_trickling_head_after_a_pipelined_answer_gets_408_too(self):
        c = self.client(self.r)
        c.send(request("GET", "/health") + b"GET /a HTT")
        self.assertEqual(c.read().status, 200)
        self.assertEqual(c.read().status, 408)

    def test_a_body_that_stops_gets_408(self):
        for path in ("/a", "/v1/chat/completions"):
            for how in (("Content-Length", "100"), ("Transfer-Encoding", "chunked")):
                c = self.client(self.r)
                c.send(request("POST", path, None, [how]) + b"5\r\n")
                self.assertEqual(c.read().status, 408, (path, how))
                self.assertTrue(c.is_closed())
        self.r.quiet()

    def test_a_slow_body_that_goes_on_is_fine(self):
        c = self.client(self.r)
        c.send(request("POST", "/a", None, [("Content-Length", "10")]))
        for _ in range(10):
            time.sleep(0.1)
            c.send(b"x")
        self.assertEqual(c.read().status, 200)

    def test_an_idle_connection_is_closed_in_silence(self):
        r = self.router([self.e], "--other-paths", "pass", "--client-idle-timeout", "300ms")
        c = self.client(r)
        self.assertTrue(c.is_closed())
        c = self.client(r)
        self.assertEqual(c.ask("GET", "/a").status, 200)
        self.assertTrue(c.is_closed())

    def test_waiting_for_the_engine_is_not_idling(self):
        r = self.router([self.e], "--other-paths", "pass", "--client-idle-timeout", "300ms",
                        "--client-head-timeout", "300ms", "--client-body-timeout", "300ms")

        def slow(asked):
            asked.read_body()
            time.sleep(0.8)
            asked.send(answer(200, b"late"))
        self.e.handler = slow
        self.assertEqual(self.client(r).ask("GET", "/a").body, b"late")
        self.assertEqual(self.client(r).ask("POST", "/v1/completions", b"{}").body, b"late")

    def test_a_client_that_does_not_read_loses_its_connection(self):
        def endless(asked):
            asked.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            try:
                while True:
                    asked.send(chunk(b"x" * 65536))
            except OSError:
                asked.gone.set()
        self.e.handler = endless
        before = self.r.metric("client_timeouts_total")
        c = self.client(self.r, receive_buffer=4096)
        c.send(request("GET", "/a"))
        asked = self.e.wait_request()
        self.assertTrue(asked.gone.wait(10), "the engine was not let go")
        self.r.quiet()
        self.assertEqual(self.r.metric("client_timeouts_total"), before + 1)

    def test_an_oversized_head_gets_431(self):
        c = self.client(self.r)
        c.send(b"GET /a HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 3000 + b"\r\n\r\n")
        self.assertEqual(c.read().status, 431)
        self.assertTrue(c.is_closed())
        c = self.client(self.r)
        c.send(b"GET /a HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 20 + b"\r\n")
        self.assertEqual(c.read().status, 431)

    def test_a_head_under_the_limit_passes(self):
        got = self.client(self.r).ask("GET", "/a", None, [("X", "y" * 1900)])
        self.assertEqual(got.status, 200)

    def test_connections_beyond_the_limit_get_503_until_others_go(self):
        r = self.router([self.e], "--other-paths", "pass", "--connections-max", "3",
                        wait_up=False)
        wait_for(lambda: r.events("replica_up"), "the replica")
        held = [self.client(r) for _ in range(3)]
        for c in held:
            self.assertEqual(c.ask("GET", "/a").status, 200)
        extra = self.client(r)
        self.assertEqual(extra.read().status, 503)
        self.assertTrue(extra.is_closed())
        self.assertEqual(held[0].ask("GET", "/a").status, 200)
        held[0].close()

        def another():
            c = Client(r.port)
            try:
                c.send(request("GET", "/a"))
                return c.read().status == 200
            except (OSError, Cut):
                return False
            finally:
                c.close()
        wait_for(another, "room for another connection")

    def test_bodies_beyond_the_memory_limit_are_shed(self):
        r = self.router([self.e], "--buffered-bytes-max", "512KiB",
                        "--body-bytes-max", "400KiB", "--other-paths", "pass")
        body = b'{"model":"m","prompt":"' + b"x" * 300000
        one = self.client(r)
        one.send(request("POST", "/v1/completions", None, [("Content-Length", "400000")]) + body)
        wait_for(lambda: r.metric("body_bytes_held") > 290000, "the first body held")
        two = self.client(r)
        try:
            two.send(request("POST", "/v1/completions", body + b'"}'))
        except OSError:
            pass
        got = two.read()
        self.assertEqual(got.status, 503)
        self.assertEqual(got.get("retry-after"), "1")
        one.close()
        r.quiet()
        self.assertEqual(self.client(r).ask("POST", "/v1/completions", body + b'"}').status, 200)


if __name__ == "__main__":
    unittest.main()
