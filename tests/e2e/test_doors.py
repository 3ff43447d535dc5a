"""Strangers at all three ports: what they may hold, and that others get through."""

import unittest

from lib import HOST, answer, request
from lib_live import Viewer
from test_admin_tokens import TokensCase

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
                pass  # it had to go already
            out.append(c)
        return out

    def test_strangers_at_the_probe_port_leave_room(self):
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


if __name__ == "__main__":
    unittest.main()
