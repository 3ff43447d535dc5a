"""Pages in browsers, from another origin: the router's own answers allow reading, as engines' answers do; and
preflights, which carry no key, are answered."""

import os
import tempfile
import unittest

from lib import Case, Engine, Router, answer, wait_for
from test_daemon import run

CHAT = "/v1/chat/completions"
ORIGIN = ("Origin", "https://chat.test")
ASK = [ORIGIN, ("Access-Control-Request-Method", "POST"),
       ("Access-Control-Request-Headers", "authorization,content-type")]
ALLOW = "access-control-allow-origin"
EXPOSED = {"x-request-id", "x-should-retry", "x-grapevine-replica", "x-grapevine-model", "x-grapevine-fallback",
           "x-grapevine-reason", "x-grapevine-limit", "retry-after"}


class Cors(Case):
    @classmethod
    def set_up(cls):
        cls.e = cls.shared(Engine())
        cls.r = cls.shared(Router([cls.e]))

    def setUp(self):
        super().setUp()
        self.e.clear()
        self.e.replies(answer(200, b"{}", [("Access-Control-Allow-Origin", "*")]))

    def own(self, r):
        """Answers of the router's own, of all kinds."""
        c = lambda *args: self.client(r).ask(*args)
        yield 200, c("GET", "/v1/models", None, [ORIGIN])
        yield 404, c("GET", "/v1/models/none", None, [ORIGIN])
        yield 404, c("POST", CHAT, b'{"model": "none"}', [ORIGIN])
        yield 404, c("GET", "/nowhere", None, [ORIGIN])
        yield 405, c("GET", CHAT, None, [ORIGIN])
        yield 403, c("POST", "/sleep", None, [ORIGIN])
        yield 415, c("POST", CHAT, b"{}", [ORIGIN, ("Content-Encoding", "br")])
        yield 200, c("GET", "/health", None, [ORIGIN])
        yield 400, c("GET", "/x y", None, [ORIGIN])

    def test_the_routers_own_answers_can_be_read(self):
        for status, got in self.own(self.r):
            self.assertEqual((got.status, got.all(ALLOW)), (status, ["*"]))
            self.assertEqual(set(got.get("access-control-expose-headers").split(", ")), EXPOSED)
            self.assertIsNone(got.get("vary"))

    def test_an_engines_answer_has_one_allow_origin_header(self):
        got = self.client(self.r).ask("POST", CHAT, b'{"model": "m"}', [ORIGIN])
        self.assertEqual((got.status, got.all(ALLOW), got.get("access-control-expose-headers")), (200, ["*"], None))
        self.e.replies(answer(500, b"{}"))  # and absent headers are not added
        self.assertEqual(self.client(self.r).ask("POST", CHAT, b'{"model": "m"}', [ORIGIN]).all(ALLOW), [])

    def test_preflights_are_answered(self):
        for path, methods in ((CHAT, {"POST", "OPTIONS"}), ("/v1/models", {"GET", "HEAD", "OPTIONS"}),
                              ("/v1/videos/v1", {"GET", "DELETE", "OPTIONS"})):
            got = self.client(self.r).ask("OPTIONS", path, None, ASK)
            self.assertEqual((got.status, got.all(ALLOW), got.body), (204, ["*"], b""), path)
            self.assertLessEqual(methods, set(got.get("access-control-allow-methods").split(", ")))
            self.assertEqual(got.get("access-control-allow-headers"), "authorization,content-type")
            self.assertEqual(got.get("access-control-max-age"), "600")
        for path in ("/nowhere", "/v1/custom?x=1", "/"):  # the request that follows gets the 404, which its page can read
            got = self.client(self.r).ask("OPTIONS", path, None, ASK)
            self.assertEqual((got.status, got.all(ALLOW)), (204, ["*"]), path)
        self.assertEqual(self.client(self.r).ask("OPTIONS", "/sleep", None, ASK).status, 403)
        self.assertEqual(self.e.requests, [])
        got = self.client(self.r).ask("OPTIONS", CHAT)  # no preflight: the engine's to answer
        self.assertEqual((got.status, len(self.e.requests)), (200, 1))

    def test_preflights_need_no_key(self):
        with tempfile.TemporaryDirectory() as folder:
            keys = os.path.join(folder, "keys")
            code, key, err = run("gvctl", "key", "new", "alice", "--file", keys)
            self.assertEqual((code, err), (0, ""))
            r = self.router([self.e], "--client-keys-file", keys, wait_up=False)
            wait_for(lambda: r.admin("GET", "/readyz").status == 200, "ready")
            for path in (CHAT, "/v1/models", "/nowhere", "/v1/audio/speech"):
                self.assertEqual(self.client(r).ask("OPTIONS", path, None, ASK).status, 204, path)
            self.assertEqual(self.client(r).ask("OPTIONS", CHAT, None, [ORIGIN]).status, 401)  # no preflight
            got = self.client(r).ask("POST", CHAT, b'{"model": "m"}', [ORIGIN])
            self.assertEqual((got.status, got.all(ALLOW)), (401, ["*"]))
            self.assertEqual(self.e.requests, [])
            got = self.client(r).ask("POST", CHAT, b'{"model": "m"}', [ORIGIN, ("Authorization", "Bearer " + key.strip())])
            self.assertEqual(got.status, 200)

    def test_only_the_listed_origins_are_allowed(self):
        r = self.router([self.e], "--cors-allow-origin", "https://other.test, https://chat.test")
        for status, got in self.own(r):
            if status == 400:  # refused before its head was read
                continue
            self.assertEqual((got.status, got.all(ALLOW), got.get("vary")), (status, ["https://chat.test"], "Origin"))
        self.assertEqual(self.client(r).ask("OPTIONS", CHAT, None, ASK).get(ALLOW), "https://chat.test")
        for origin in ("https://evil.test", "null", "https://chat.test.evil", "https://other.test, https://chat.test"):
            got = self.client(r).ask("GET", "/v1/models", None, [("Origin", origin)])
            self.assertEqual((got.status, got.all(ALLOW), got.get("vary")), (200, [], "Origin"), origin)
            got = self.client(r).ask("OPTIONS", CHAT, None, [("Origin", origin)] + ASK[1:])
            self.assertEqual((got.status, got.all(ALLOW), got.get("x-grapevine-limit")), (403, [], "cors-allow-origin"))
        self.assertEqual(self.client(r).ask("GET", "/v1/models").all(ALLOW), [])
        self.assertEqual(self.e.requests, [])
        self.e.replies(answer(200, b"{}", [("Access-Control-Allow-Origin", "*"), ("Vary", "Accept-Language")]))
        for origin, allowed in (("https://chat.test", ["https://chat.test"]), ("https://evil.test", [])):
            got = self.client(r).ask("POST", CHAT, b'{"model": "m"}', [("Origin", origin)])
            self.assertEqual((got.status, got.all(ALLOW)), (200, allowed))
            self.assertEqual(sorted(got.all("vary")), ["Accept-Language", "Origin"])

    def test_off_adds_no_headers(self):
        r = self.router([self.e], "--cors-allow-origin", "off")
        for status, got in self.own(r):
            self.assertEqual((got.status, got.all(ALLOW), got.get("vary")), (status, [], None))
        self.assertEqual(self.client(r).ask("OPTIONS", CHAT, None, ASK).status, 200)
        self.assertEqual([a.method for a in self.e.requests], ["OPTIONS"])

    def test_the_admin_port_adds_no_headers(self):
        got = self.r.admin("GET", "/healthz")
        self.assertEqual((got.status, got.all(ALLOW)), (200, []))


if __name__ == "__main__":
    unittest.main()
