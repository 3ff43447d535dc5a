"""Engines behind a host name: an ingress, or a platform's front end, serves several sites at one address and knows by Host
which is meant. Requests carry the authority of the replica's URL, as probes do, or the client's Host where that is set."""

import json
import unittest

from lib import Case, Engine, answer, wait_for
from lib_cluster import gvctl


class Named(Engine):
    """Answers under its own names alone, to probes as well."""

    def __init__(self, **how):
        super().__init__(**how)
        self.name = "localhost:%d" % self.port
        self.url = "http://" + self.name
        self.names = [self.name]
        self.strangers = []
        self.handler = self.serve

    def serve(self, asked):
        asked.read_body()
        known = asked.get("host") in self.names
        if not known:
            self.strangers.append((asked.target, asked.get("host")))
        asked.send(answer(200 if known else 404, b'{"choices":[]}' if known else b"no such site",
                          [("Content-Type", "application/json")]))

    def _probe(self, asked):
        if asked.get("host") not in self.names:
            self.strangers.append((asked.target, asked.get("host")))
            asked.send(answer(404, b"no such site"))
            return
        super()._probe(asked)


def chat(**more):
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], **more}).encode()


class HostHeader(Case):
    def named(self, **how):
        return self.keep(Named(**how))

    def test_requests_carry_the_host_of_the_replicas_url(self):
        e = self.named()
        r = self.router([e])
        for body in (chat(), chat(stream=False, n=1)):
            got = self.client(r).ask("POST", "/v1/chat/completions", body)
            self.assertEqual((got.status, got.get("x-grapevine-replica")), (200, e.names[0]), got.body)
        self.assertEqual(e.requests[-1].get("x-forwarded-host"), "router.test")
        self.assertEqual(self.client(r).ask("POST", "/v1/embeddings", b'{"model": "m", "input": "x"}').status, 200)
        got = self.client(r).ask("GET", "/version")
        self.assertEqual(got.status, 200)
        self.assertEqual(e.strangers, [])

    def test_operators_see_a_wrong_host(self):
        good, other = self.named(), self.named()
        wrong = "127.0.0.1:%d" % other.port
        r = self.router([good, "http://" + wrong], wait_up=False)
        wait_for(lambda: "checks:404" in gvctl("replicas", admin=r.admin_port)[1], "it is down")
        said = gvctl("replicas", admin=r.admin_port)[1]
        self.assertIn("- %s  down: its health checks fail with status 404: check that the engine runs there" % wrong, said)
        self.assertIn("1 down: %s (its health checks fail with status 404)" % wrong, gvctl("status", admin=r.admin_port)[1])

    def test_x_forwarded_host_of_a_proxy_stays(self):
        e = self.named()
        r = self.router([e])
        got = self.client(r).ask("POST", "/v1/chat/completions", chat(), [("X-Forwarded-Host", "api.test")])
        self.assertEqual((got.status, e.requests[-1].all("x-forwarded-host")), (200, ["api.test"]))

    def test_a_retry_carries_the_other_replicas_host(self):
        first, second = self.named(), self.named()
        def fail_once(e):
            def handler(asked):
                if len(first.requests) + len(second.requests) == 1:
                    asked.read_body()
                    asked.send(answer(503, b"busy"))
                else:
                    e.serve(asked)
            return handler
        first.handler, second.handler = fail_once(first), fail_once(second)
        r = self.router([first, second])
        got = self.client(r).ask("POST", "/v1/chat/completions", chat())
        self.assertEqual(got.status, 200, got.body)
        self.assertEqual((len(first.requests), len(second.requests)), (1, 1))
        self.assertEqual(first.strangers + second.strangers, [])
        for e in (first, second):
            self.assertEqual([a.get("host") for a in e.requests], e.names)

    def test_the_clients_host_passes_if_configured(self):
        e = self.named()
        e.names.append("router.test")
        r = self.router([e], "--host-header", "client")
        self.assertEqual(self.client(r).ask("POST", "/v1/chat/completions", chat()).status, 200)
        self.assertEqual(e.requests[-1].get("host"), "router.test")
        c = self.client(r)  # HTTP/1.0 needs no Host: then the replica's name is all that there is
        c.send(b"GET /version HTTP/1.0\r\n\r\n")
        self.assertEqual(c.read().status, 200)
        self.assertEqual(e.requests[-1].get("host"), "localhost:%d" % e.port)

    def test_a_label_overrides_the_setting(self):
        one, other = self.named(models=["one"]), self.named(models=["other"])
        one.names.append("router.test")
        one.url += "#host-header=client"
        r = self.router([one, other])
        for e, host in ((one, "router.test"), (other, other.names[0])):
            got = self.client(r).ask("POST", "/v1/chat/completions", chat(model=e.models[0]))
            self.assertEqual((got.status, e.requests[-1].get("host")), (200, host))

    def test_a_redirect_to_the_replicas_name_points_to_the_router(self):
        e = self.named()
        r = self.router([e], "--other-paths", "pass")
        for to, seen in (("http://%s/docs?a=1" % e.names[0], "/docs?a=1"),
                         ("https://%s/docs" % e.names[0], "/docs"),
                         ("http://elsewhere.test/docs", "http://elsewhere.test/docs"),
                         ("http://%s//docs" % e.names[0], "http://%s//docs" % e.names[0]),
                         ("/docs", "/docs")):
            e.handler = lambda asked: (asked.read_body(), asked.send(answer(307, b"", [("Location", to)])))
            got = self.client(r).ask("GET", "/docs/")
            self.assertEqual((got.status, got.all("location")), (307, [seen]))

    def test_with_the_clients_host_redirects_pass_unchanged(self):
        e = self.named()
        e.names.append("router.test")
        to = "http://%s/docs" % e.names[0]
        e.handler = lambda asked: (asked.read_body(), asked.send(answer(307, b"", [("Location", to)])))
        r = self.router([e], "--other-paths", "pass", "--host-header", "client")
        got = self.client(r).ask("GET", "/docs/")
        self.assertEqual((got.status, got.all("location")), (307, [to]))


if __name__ == "__main__":
    unittest.main()
