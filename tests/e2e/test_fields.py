"""Header fields on their way: what passes, what stops here, what is added."""

import os
import socket
import threading
import unittest

from lib import HOST, LIMIT, SSE_HEAD, Case, Engine, Router, answer, chunk, request, wait_for


def family(host):
    return socket.AF_INET6 if ":" in host else socket.AF_INET


class Fields(Case):
    """Header fields on their way."""

    @classmethod
    def set_up(cls):
        cls.e = cls.shared(Engine())
        cls.r = cls.shared(Router([cls.e], "--other-paths", "pass"))

    def setUp(self):
        super().setUp()
        self.e.clear()
        self.e.handler = lambda asked: (asked.read_body(), asked.send(answer(200, b"ok")))

    def ask(self, headers=(), **how):
        got = self.client(self.r).ask("GET", "/a", None, headers, **how)
        return got, self.e.requests[-1]

    def test_end_to_end_fields_pass_in_order_and_repeated(self):
        given = [("X-B", "1"), ("Authorization", "Bearer k"), ("X-A", "2"), ("X-B", "3"),
                 ("Accept", "*/*"), ("Cookie", "a=b")]
        _, asked = self.ask(given)
        passed = [(n, v) for n, v in asked.headers if n in {g.lower() for g, _ in given}]
        self.assertEqual(passed, [(n.lower(), v) for n, v in given])

    def test_hop_by_hop_fields_are_not_forwarded(self):
        _, asked = self.ask([("Connection", "keep-alive, X-Mine, te"), ("Keep-Alive", "timeout=5"),
                             ("X-Mine", "secret"), ("TE", "trailers"), ("Upgrade", "h2c"),
                             ("Proxy-Authorization", "Basic x"), ("Proxy-Connection", "close"),
                             ("X-Yours", "stays")])
        for name in ("connection", "keep-alive", "x-mine", "te", "upgrade", "proxy-authorization",
                     "proxy-connection"):
            self.assertIsNone(asked.get(name), name)
        self.assertEqual(asked.get("x-yours"), "stays")

    def test_the_connection_header_cannot_remove_essential_fields(self):
        _, asked = self.ask([("Connection", "host, content-length, authorization, x-forwarded-for"),
                             ("Authorization", "Bearer k")])
        self.assertEqual(asked.get("authorization"), "Bearer k")
        self.assertEqual(asked.get("x-forwarded-for"), "127.0.0.1")
        self.assertEqual(asked.get("host"), self.e.name)

    def test_hop_by_hop_fields_of_the_engine_are_not_forwarded(self):
        self.e.replies(answer(200, b"ok", [("Connection", "keep-alive, X-Internal"),
                                           ("X-Internal", "1"), ("Keep-Alive", "timeout=5"),
                                           ("Upgrade", "h2c"), ("X-Kept", "1"),
                                           ("Proxy-Authenticate", "Basic")]))
        got, _ = self.ask()
        for name in ("connection", "x-internal", "keep-alive", "upgrade", "proxy-authenticate"):
            self.assertIsNone(got.get(name), name)
        self.assertEqual(got.get("x-kept"), "1")

    def test_answers_keep_their_fields_and_reason(self):
        self.e.replies(answer(200, b"ok", [("Server", "uvicorn"), ("Set-Cookie", "a"),
                                           ("Set-Cookie", "b"), ("Date", "now")], "Fine By Me"))
        got, _ = self.ask()
        self.assertEqual(got.start, "HTTP/1.1 200 Fine By Me")
        self.assertEqual((got.all("set-cookie"), got.get("server")), (["a", "b"], "uvicorn"))

    def test_the_client_is_named_to_the_engine(self):
        _, asked = self.ask()
        self.assertEqual(asked.get("x-forwarded-for"), "127.0.0.1")
        self.assertEqual(asked.get("x-forwarded-proto"), "http")
        self.assertEqual(asked.get("x-forwarded-host"), "router.test")
        self.assertIsNone(asked.get("forwarded"))

    def test_forwarding_fields_of_a_proxy_in_front_are_extended(self):
        _, asked = self.ask([("X-Forwarded-For", "10.0.0.9"), ("X-Forwarded-Proto", "https"),
                             ("X-Forwarded-Host", "api.test"), ("Forwarded", "for=10.0.0.9")])
        self.assertEqual(asked.all("x-forwarded-for"), ["10.0.0.9, 127.0.0.1"])
        self.assertEqual(asked.all("x-forwarded-proto"), ["https"])
        self.assertEqual(asked.all("x-forwarded-host"), ["api.test"])
        self.assertEqual(asked.all("forwarded"),
                         ['for=10.0.0.9, for=127.0.0.1;host="router.test";proto=http'])

    def test_forwarding_fields_of_clients_can_be_replaced(self):
        """If clients connect directly, their own forwarding fields are worthless."""
        r = self.router([self.e], "--other-paths", "pass", "--forwarded-headers", "replace")
        self.client(r).ask("GET", "/a", None, [
            ("X-Forwarded-For", "10.0.0.9"), ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-Host", "api.test"), ("Forwarded", "for=10.0.0.9"),
            ("X-Real-IP", "10.0.0.9")])
        asked = self.e.requests[-1]
        self.assertEqual(asked.all("x-forwarded-for"), ["127.0.0.1"])
        self.assertEqual(asked.all("x-forwarded-proto"), ["http"])
        self.assertEqual(asked.all("x-forwarded-host"), ["router.test"])
        self.assertEqual(asked.all("forwarded") + asked.all("x-real-ip"), [])

    def test_a_request_id_is_passed_on_and_back(self):
        got, asked = self.ask([("X-Request-Id", "abc-123")])
        self.assertEqual(asked.all("x-request-id"), ["abc-123"])
        self.assertEqual(got.all("x-request-id"), ["abc-123"])

    def test_a_missing_request_id_is_generated(self):
        seen = set()
        for _ in range(5):
            got, asked = self.ask()
            self.assertRegex(got.get("x-request-id"), "^[0-9a-f]{32}$")
            self.assertEqual(asked.all("x-request-id"), got.all("x-request-id"))
            seen.add(got.get("x-request-id"))
        self.assertEqual(len(seen), 5)

    def test_an_unsafe_request_id_is_replaced(self):
        for bad in ("x" * 200, "a b", ""):
            got, asked = self.ask([("X-Request-Id", bad)])
            self.assertRegex(got.get("x-request-id"), "^[0-9a-f]{32}$")
            self.assertEqual(asked.all("x-request-id"), got.all("x-request-id"))

    def test_the_engines_own_request_id_is_not_passed_on(self):
        self.e.replies(answer(200, b"", [("X-Request-Id", "engine")]))
        got, _ = self.ask([("X-Request-Id", "client")])
        self.assertEqual(got.all("x-request-id"), ["client"])

    def test_local_answers_and_errors_carry_the_request_id_too(self):
        for path in ("/health", "/sleep", "/v1/models"):
            got = self.client(self.r).ask("GET", path, None, [("X-Request-Id", "abc")])
            self.assertEqual(got.get("x-request-id"), "abc", path)

    def test_traceparent_passes(self):
        trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        _, asked = self.ask([("traceparent", trace), ("tracestate", "a=1")])
        self.assertEqual((asked.get("traceparent"), asked.get("tracestate")), (trace, "a=1"))

    def test_the_target_reaches_the_engine_unchanged(self):
        c = self.client(self.r)
        c.send(b"GET /a%20b/../c?q=1&q=%7a?& HTTP/1.1\r\nHost: Api.Test:99\r\n\r\n")
        c.read()
        asked = self.e.requests[-1]
        self.assertEqual(asked.get("x-forwarded-host"), "Api.Test:99")
        self.assertEqual(asked.target, "/a%20b/../c?q=1&q=%7a?&")

    def test_the_answer_names_the_replica(self):
        got, _ = self.ask()
        self.assertEqual(got.get("x-grapevine-replica"), self.e.name)

    def test_without_the_replica_header_the_answer_names_no_replica(self):
        for flag in (["--no-replica-header"], ["--replica-header=off"]):
            r = self.router([self.e], "--other-paths", "pass", *flag)
            self.assertIsNone(r.get("/a").get("x-grapevine-replica"), flag)


class Addresses(Case):
    """A port on [::] sees IPv4 clients under IPv6 addresses (::ffff:127.0.0.1). The router names, counts and allows
    them by their IPv4 addresses."""

    def setUp(self):
        super().setUp()
        if not socket.has_ipv6 or not os.path.exists("/proc/net/if_inet6"):
            self.skipTest("no IPv6 here")
        self.e = self.engine()

    def dual(self, *args):
        return self.router([self.e], "--listen", "[::]:0", "--admin-listen", HOST + ":0", "--index-bytes",
                           "32MiB", "--drain-delay", "0", *args, defaults=False)

    def test_ipv4_clients_at_a_port_of_ipv6(self):
        r = self.dual("--access-log", "all", "--connections-per-client-max", "2")
        for host in (HOST, "::1"):
            held = [self.client(r, host=host, family=family(host)) for _ in range(2)]
            self.assertEqual(held[0].ask("GET", "/v1/x", None, [("Host", "x")]).status, 404)
            self.assertEqual(held[1].post("/v1/completions", {"model": "m", "prompt": "x"}).status, 200)
            self.assertEqual(self.e.requests[-1].get("x-forwarded-for"), host)
            wait_for(lambda: host in {e["client"] for e in r.events("request")}, "a line of " + host)
            more = self.client(r, host=host, family=family(host))
            self.assertEqual(more.post("/v1/completions", {"model": "m", "prompt": "x"}).status, 429)
            for c in held + [more]:
                c.close()
        self.assertEqual({e["client"] for e in r.events("request")}, {HOST, "::1"})

    def test_balancers_are_matched_by_ipv4_address(self):
        r = self.dual("--proxy-protocol", "on", "--proxy-protocol-from", "127.0.0.0/8")
        for said in ("TCP4 192.0.2.9 127.0.0.1", "TCP6 ::ffff:192.0.2.9 ::1"):
            c = self.client(r).send("PROXY %s 1 2\r\n" % said)
            self.assertEqual(c.post("/v1/completions", {"model": "m", "prompt": "x"}).status, 200)
            self.assertEqual(self.e.requests[-1].get("x-forwarded-for"), "192.0.2.9")


class HalfClosed(Case):
    """A client that sends its request and closes its half of the connection, as `nc -N` does."""

    def answered(self, how, stream):
        e = self.engine()
        gone, ended = threading.Event(), threading.Event()

        def handler(asked):
            asked.read_body()
            if how == "gone" and asked.wait_gone():
                gone.set()
                return
            ended.wait(LIMIT)
            if stream:
                asked.send(SSE_HEAD + chunk(b'data: {"choices":[{"delta":{"content":"x"}}]}\n\n') +
                           chunk(b"data: [DONE]\n\n") + chunk(b""))
            else:
                asked.send(answer(200, b"ok"))
        e.handler = handler
        r = self.router([e], *(["--client-half-close", how] if how == "answer" else []))
        c = self.client(r).send(request("POST", "/v1/completions",
                                        b'{"model":"m","prompt":"x","stream":%s}' % (b"true" if stream else b"false")))
        e.wait_request()
        c.sock.shutdown(socket.SHUT_WR)
        for _ in range(2):  # everything before these was read when they are answered
            self.assertEqual(r.admin("GET", "/healthz").status, 200)
        ended.set()
        got = b""
        while piece := c.sock.recv(65536):
            got += piece
        if how == "gone":
            self.assertTrue(gone.wait(LIMIT))
        return got

    def test_a_half_closed_client_counts_as_gone(self):
        self.assertEqual(self.answered("gone", False), b"")

    def test_a_half_closed_client_gets_its_answer(self):
        got = self.answered("answer", False)
        self.assertTrue(got.startswith(b"HTTP/1.1 200") and got.endswith(b"ok"), got)
        got = self.answered("answer", True)
        self.assertTrue(got.startswith(b"HTTP/1.1 200") and got.endswith(b"0\r\n\r\n"), got)


if __name__ == "__main__":
    unittest.main()
