"""Strangers at all three ports: the connections and memory that they may use, and that others get through."""

import unittest

from lib import HOST, answer, request, wait_for
from lib_live import Viewer
from test_admin_tokens import TokensCase, bearer

CHAT = "/v1/chat/completions"
# Open files, and how many connections the admin port and the probe port have then
FILES = ((600, 160), (100, 31))


def probe_port(r):
    return next(x["port"] for x in r.events("listening") if x["port_of"] == "probes")


class Connections(TokensCase):
    """The probe port and the admin port have a number of connections of their own."""

    def crowd(self, port, count, text=b""):
        out = []
        for _ in range(count):
            c = self.client(port)
            try:
                c.send(text)
            except OSError:
                pass  # the router closed it already
            out.append(c)
        return out

    def test_strangers_at_the_probe_port_leave_connections_to_others(self):
        e = self.engine()
        e.replies(answer(200, b"ok"))
        for files, most in FILES:
            r = self.router([e], "--probe-listen", HOST + ":0",
                            wrap=["sh", "-c", 'ulimit -n %d; exec "$@"' % files, "sh"])
            self.crowded(r, probe_port(r), most)

    def crowded(self, r, port, most):
        viewer = Viewer(r).begin()
        viewer.next("hello")
        for text in (b"", b"GET /healthz HT", request("GET", "/healthz")):
            self.crowd(port, most + 20, text)
            for path in ("/healthz", "/readyz"):
                self.assertEqual(r.get(path, port).status, 200, text)
            self.assertEqual(r.admin("GET", "/readyz").status, 200, text)
            self.assertEqual(r.get("/health").status, 200, text)
            self.assertIn(r.metric("connections_open"), (most, most + 1), text)
        viewer.next("snap")
        viewer.close()
        self.assertEqual(r.metric("accept_failures_total"), 0)
        self.assertGreater(r.metric("connections_evicted_total"), 2 * most)


class Bodies(TokensCase):
    """Without a key or a token no client makes the router buffer the body of a request."""

    BODY = b'{"model":"m","messages":[{"role":"user","content":"%s"}]}' % (b"x" * 300000)

    def test_bodies_of_strangers_leave_the_memory_to_others(self):
        e, r = self.router_with("--probe-listen", HOST + ":0", "--buffered-bytes-max", "1MiB",
                                "--body-bytes-max", "400KiB")
        e.replies(answer(200, b"{}"))
        strangers = []
        for port, method, path, headers in (
                (r.port, "POST", "/ping", ()), (r.port, "GET", "/health", ()),
                (probe_port(r), "GET", "/healthz", ()), (r.admin_port, "GET", "/readyz", ()),
                (r.admin_port, "POST", "/explain", bearer("read")),
                (r.admin_port, "POST", "/undrain?replica=" + e.name, bearer("change"))):
            c = self.client(port)
            c.send(request(method, path, None, [("Content-Length", str(len(self.BODY)))] +
                           [("Host", HOST)] + list(headers)) + self.BODY[:-1])
            strangers.append(c)
        wait_for(lambda: r.metric("request_body_bytes_total") >= len(strangers) * (len(self.BODY) - 1),
                 "all that they sent")
        self.assertLess(r.metric("body_bytes_held"), 100000)
        self.assertEqual(self.client(r).ask("POST", CHAT, self.BODY).status, 200)
        for c in strangers:
            c.send(self.BODY[-1:])
            got = c.read()
            self.assertEqual(got.status, 200)
            self.assertTrue(c.is_open())
        r.quiet()

    def test_the_admin_port_refuses_before_the_body_is_sent(self):
        """A client without permission gets its refusal at once, however long the body, and may send the rest."""
        e, r = self.router_with("--probe-listen", HOST + ":0")
        undrain = "/undrain?replica=" + e.name
        for port, path, token, status in (
                (r.admin_port, "/explain", None, 401), (r.admin_port, "/explain", "wrong", 401),
                (r.admin_port, undrain, "read", 401), (r.admin_port, "/nothing", None, 404),
                (r.admin_port, "/replicas/", "change", 404), (probe_port(r), "/explain", None, 404)):
            c = self.client(port)
            headers = [("Host", HOST)] + (bearer(token) if token else [])
            c.send(request("POST", path, None, headers + [("Content-Length", str(len(self.BODY)))]))
            self.assertEqual(c.read().status, status, path)
            c = self.client(port)
            c.send(request("POST", path, self.BODY, headers))  # nothing is read before
            got = c.read()
            self.assertEqual((got.status, got.get("connection")), (status, "close"), path)
            self.assertTrue(c.is_closed())

    def test_explain_accepts_a_long_prompt_in_any_framing(self):
        _, r = self.router_with()
        alone = r.admin("POST", "/explain", self.BODY, bearer("read")).json
        self.assertGreater(alone["prompt_tokens"], 50000)
        c = self.client(r.admin_port)
        c.send(request("POST", "/explain", None, [("Transfer-Encoding", "chunked"), ("Host", HOST)] +
                       bearer("read")))
        for at in range(0, len(self.BODY), 70001):
            piece = self.BODY[at:at + 70001]
            c.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        c.send(b"0\r\n\r\n")
        self.assertEqual(c.read().json["prompt_tokens"], alone["prompt_tokens"])
        got = r.admin("POST", "/explain", b"", bearer("read"))
        self.assertEqual((got.status, "not a JSON request" in got.body.decode()), (400, True))


if __name__ == "__main__":
    unittest.main()
