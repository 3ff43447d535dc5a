"""The admin port's tokens, its port for probes, and a stranger that tries every call."""

import json
import os
import re
import socket
import tempfile
import types
import unittest

from lib import HOST, LIMIT, Case, Client, Reader, wait_for
from test_admin import own_address
from test_daemon import run

CHAT = "/v1/chat/completions"
SECRET = "the words of a prompt"
BODY = b'{"model":"m","messages":[{"role":"user","content":"%s"}]}' % SECRET.encode()
PROBES = ("/healthz", "/readyz", "/metrics", "/figures")
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")


def bearer(token):
    return [("Authorization", "Bearer " + token)]


class TokensCase(Case):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def token(self, text, name):
        path = os.path.join(self.folder, name)
        with open(path + ".new", "w") as f:
            f.write(text + "\n")
        os.chmod(path + ".new", 0o600)
        os.rename(path + ".new", path)
        return path

    def router_with(self, *args, change="change", read="read"):
        e = self.engine()
        self.files = []
        for option, text in (("--admin-token-file", change), ("--admin-read-token-file", read)):
            if text is not None:
                self.files += [option, self.token(text, option[2:])]
        return e, self.router([e], *self.files, *args)


class Tokens(TokensCase):
    def test_reading_and_changing_have_separate_tokens(self):
        e, r = self.router_with()
        drain = "/undrain?replica=" + e.name
        for token, reads, changes in ((None, 401, 401), ("read", 200, 401), ("change", 200, 200),
                                      ("reads", 401, 401), ("", 401, 401)):
            headers = bearer(token) if token is not None else ()
            for path in ("/replicas", "/config", "/", "/queue", "/members", "/poison", "/sources"):
                got = r.admin("GET", path, headers=headers)
                alone = reads == 200 and path == "/members"  # a router alone has none
                self.assertEqual(got.status, 409 if alone else reads, path)
                if reads == 401:
                    self.assertEqual(got.get("www-authenticate"), "Bearer")
            self.assertEqual(r.admin("POST", "/explain", BODY, headers).status, reads)
            self.assertEqual(r.admin("POST", drain, b"", headers).status, changes)
            for path in PROBES:
                self.assertEqual(r.admin("GET", path, headers=headers).status, 200)
        for token, begins in ((None, "The admin port of this router requires"), ("reads", "This router does not know that token. "),
                              ("read", "That token may only read. ")):
            got = r.admin("POST", drain, b"", bearer(token) if token else ())
            self.assertTrue(got.json["error"]["message"].startswith(begins), got.body)
        port = "http://%s:%d" % (HOST, r.admin_port)
        code, _, err = run("gvctl", "--admin", port, "replicas")
        self.assertEqual((code, "--token-file" in err), (1, True), err)
        for file in self.files[1::2]:
            self.assertEqual(run("gvctl", "--admin", port, "--token-file", file, "replicas")[0], 0)

    def test_each_token_works_without_the_other(self):
        e, r = self.router_with(read=None)
        self.assertEqual(r.admin("GET", "/replicas").status, 200)
        self.assertEqual(r.admin("POST", "/drain?replica=" + e.name, b"").status, 401)
        e, r = self.router_with(change=None)
        self.assertEqual(r.admin("GET", "/replicas").status, 401)
        self.assertEqual(r.admin("POST", "/drain?replica=" + e.name, b"").status, 401)
        # Without a token for changes, callers on this machine that may read may also change.
        got = r.admin("POST", "/drain?replica=" + e.name, b"", bearer("read"))
        self.assertEqual(got.status, 200)

    def test_a_token_is_changed_without_a_restart(self):
        e, r = self.router_with()
        drain = "/drain?replica=" + e.name
        self.token("new", "admin-token-file")
        wait_for(lambda: r.admin("POST", drain, b"", bearer("new")).status == 200, "the new token")
        self.assertEqual(r.admin("POST", drain, b"", bearer("change")).status, 401)
        self.token("new-reader", "admin-read-token-file")
        wait_for(lambda: r.admin("GET", "/replicas", headers=bearer("new-reader")).status == 200,
                 "the new token for reading")
        self.assertEqual(r.admin("GET", "/replicas", headers=bearer("read")).status, 401)
        self.token("", "admin-token-file")
        wrong = r.wait_event("admin_token_refused")
        self.assertIn("is empty", wrong["error"])
        self.assertEqual(r.admin("POST", drain, b"", bearer("new")).status, 200)
        self.assertNotIn("new-reader", "\n".join(r.lines))

    def test_a_port_for_probes(self):
        e, r = self.router_with("--probe-listen", HOST + ":0")
        port = next(x["port"] for x in r.events("listening") if x["port_of"] == "probes")
        for path in PROBES:
            self.assertEqual(r.get(path, port).status, 200, path)
        self.assertIn(b"grapevine_requests_total", r.get("/metrics", port).body)
        for method, path in (("GET", "/"), ("GET", "/replicas"), ("POST", "/drain"),
                             ("GET", "/config"), ("POST", "/metrics"), ("GET", "/v1/models"),
                             ("POST", "/explain")):
            c = Client(port)
            got = c.ask(method, path, b"" if method == "POST" else None, bearer("change"))
            c.close()
            self.assertEqual(got.status, 404, path)

    def test_a_bad_port_for_probes_is_refused(self):
        code, _, err = run("grapevine", "--replica", "http://127.0.0.1:1", "--check-config",
                           "--probe-listen", "nowhere")
        self.assertEqual((code, "probe-listen" in err), (2, True), err)


class Stranger(TokensCase):
    """Every path and method that GET / and gvctl know, without a token."""

    def paths(self, r, headers=()):
        """Paths in GET / and gvctl, which lists calls without a better name by their path."""
        index = r.admin("GET", "/", headers=headers).body.decode()
        found = set(re.findall(r"^\w+ +(/\S*)", index, re.M))
        self.assertGreater(len(found), 12)
        _, out, _ = run("gvctl", "--help")
        found |= {"/" + name for name in re.findall(r"^  ([a-z][a-z-]+) ", out, re.M)}
        return sorted(found | {"/", "/nothing", "/replicas?replica=10.0.0.9:80", "//replicas",
                               "/./drain?replica=10.0.0.9:80", "/explain?all=1", "/%72eplicas"})

    def state(self, r, headers=()):
        """State that a stranger must not change."""
        rows = r.admin("GET", "/replicas", headers=headers).json
        return ([(x["name"], x["wish"]) for x in rows],
                r.admin("GET", "/config", headers=headers).body)

    def live(self, r, host):
        """The beginning of a stream that has no end."""
        with socket.create_connection((host, r.admin_port), LIMIT) as s:
            s.sendall(b"GET /live HTTP/1.1\r\nHost: %s\r\n\r\n" % host.encode())
            reader = Reader(s)
            head = reader.until(b"\r\n\r\n").decode()
            body = b""
            while b"event: snap" not in body:
                body += reader.until(b"\n\n")
            return types.SimpleNamespace(status=int(head.split()[1]), body=body)

    def scan(self, r, host, paths, open_paths):
        """Each call's answer: {(method, path): answer}."""
        seen = {}
        for method in METHODS:
            for path in paths:
                c = Client(r.admin_port, host=host)
                body = None if method in ("GET", "HEAD", "OPTIONS") else BODY
                if (method, path) == ("GET", "/live") and open_paths:
                    got = self.live(r, host)
                else:
                    got = c.ask(method, path, body, [("Host", host)])
                c.close()
                seen[method, path] = got
                self.assertNotIn(SECRET.encode(), got.body, (method, path))
                changed = method not in ("GET", "HEAD") and got.status < 400
                plain = path.partition("?")[0]
                self.assertFalse(changed and (method, plain) not in open_paths, (method, path))
        return seen

    def test_without_tokens_another_machine_can_change_nothing(self):
        outside = own_address()
        if outside is None:
            self.skipTest("this machine has no address but loopback")
        e = self.engine()
        r = self.router([e], "--admin-listen", "0.0.0.0:0")
        before = self.state(r)
        c = self.client(r)
        c.send(b"POST %s HTTP/1.1\r\nHost: g\r\nContent-Length: %d\r\n\r\n%s" %
               (CHAT.encode(), len(BODY), BODY))  # one is under way meanwhile
        e.wait_request()
        seen = self.scan(r, outside, self.paths(r), {("GET", "/live")})
        self.assertEqual(seen["GET", "/live"].status, 200)
        self.assertEqual(self.state(r), before)
        for (method, path), got in seen.items():
            if path.startswith(("/drain", "/undrain", "/log-level", "/explain")) and method == "POST":
                self.assertEqual(got.status, 403, path)
        self.assertEqual(seen["GET", "/replicas"].status, 200)
        self.assertEqual(r.events("replica_added")[1:], [])

    def test_explain_does_not_reveal_served_texts_to_another_machine(self):
        """/explain of the text against /explain of one that differs in a word."""
        outside = own_address()
        if outside is None:
            self.skipTest("this machine has no address but loopback")
        sim = self.sim("--speed-up", "50")
        text = {"model": "sim", "messages": [{"role": "user", "content": "the words of a prompt " * 300}], "max_tokens": 4}
        body = json.dumps(text).encode()

        def ask(r, host, headers=()):
            c = Client(r.admin_port, host=host)
            got = c.ask("POST", "/explain", body, [("Host", host), *headers])
            c.close()
            return got
        r = self.router([sim], "--admin-listen", "0.0.0.0:0")
        self.assertEqual(self.client(r).post(CHAT, text).status, 200)
        self.assertGreater(ask(r, HOST).json["replicas"][0]["cached_tokens"], 0)
        got = ask(r, outside)
        self.assertEqual(got.status, 403)
        for word in ("whether a text was served", outside, "127.0.0.1", "admin-read-token-file", "--token-file FILE"):
            self.assertIn(word, got.json["error"]["message"])
        self.assertNotIn(b"cached", got.body)
        with tempfile.NamedTemporaryFile("wb") as f:
            f.write(body)
            f.flush()
            code, _, err = run("gvctl", "--admin", "http://%s:%d" % (outside, r.admin_port), "explain", f.name)
            self.assertEqual((code, "--token-file FILE" in err), (1, True), err)
            e, r = self.router_with("--admin-listen", "0.0.0.0:0", read=None)
            self.assertEqual(ask(r, HOST).status, 200, "from its own machine as before")
            got = ask(r, outside)
            self.assertEqual((got.status, got.get("www-authenticate")), (401, "Bearer"))
            self.assertEqual(ask(r, outside, bearer("change")).status, 200)
            code, out, err = run("gvctl", "--admin", "http://%s:%d" % (outside, r.admin_port), "--token-file",
                                 self.files[1], "explain", f.name)
            self.assertEqual((code, err), (1, ""))
            self.assertIn("no replica serves the model", out)  # this router's answer
            self.assertEqual(r.events("admin_refused")[0]["path"], "/explain")

    def test_with_both_tokens_a_stranger_sees_nothing(self):
        e, r = self.router_with()
        token = bearer("change")
        before = self.state(r, token)
        seen = self.scan(r, HOST, self.paths(r, token), ())
        self.assertEqual(self.state(r, token), before)
        for (method, path), got in seen.items():
            if method in ("GET", "HEAD") and path in PROBES:
                self.assertEqual(got.status, 200, path)
            else:
                self.assertIn(got.status, (401, 403, 404, 405), (method, path))
                self.assertNotIn(e.name.encode(), got.body, (method, path))


if __name__ == "__main__":
    unittest.main()
