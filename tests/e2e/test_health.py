"""The health of engines: probes, names with several addresses, engines that come and go."""

import json
import socket
import subprocess
import tempfile
import unittest

from lib import HOST, Case, answer, answer_json, closed_port, wait_for

CHAT = "/v1/chat/completions"


def chat(content="hi", **more):
    return json.dumps(dict({"model": "m", "messages": [{"role": "user", "content": content}]},
                           **more)).encode()


class Health(Case):
    """Replicas that come and go."""

    def test_no_replica_is_up(self):
        r = self.router(["http://%s:%d" % (HOST, closed_port())])
        wait_for(lambda: r.admin("GET", "/readyz").status == 503, "not ready")
        got = self.client(r).ask("POST", CHAT, chat())
        self.assertEqual((got.status, got.get("x-grapevine-reason"), got.get("retry-after")),
                         (503, "no_replica", "1"))
        self.assertIn("message", got.json["error"])
        self.assertEqual(r.get("/health").status, 503)
        self.assertEqual(r.admin("GET", "/healthz").status, 200)

    def test_a_replica_that_fails_its_checks_gets_no_requests(self):
        sick, well = self.engine(), self.engine()
        r = self.router([sick, well], "--policy", "round_robin", "--health-interval", "100ms")
        sick.probes["/health"] = lambda asked: asked.send(answer(500, b"sick"))
        r.wait_event("replica_down")
        for _ in range(6):
            self.assertEqual(self.client(r).ask("POST", CHAT, chat()).status, 200)
        self.assertEqual(sick.requests, [])
        del sick.probes["/health"]
        r.wait_event("replica_up", 3)
        wait_for(lambda: self.client(r).ask("POST", CHAT, chat()).status == 200 and sick.requests, "it gets requests again")

    def test_a_killed_engine_is_noticed_and_comes_back_on_its_port(self):
        e = self.engine()
        r = self.router([e], "--health-interval", "100ms")
        e.refuse()
        r.wait_event("replica_down")
        self.assertEqual(self.client(r).ask("POST", CHAT, chat()).status, 503)
        self.engine(port=e.port)
        r.wait_event("replica_up", 2)
        self.assertEqual(self.client(r).ask("POST", CHAT, chat()).status, 200)

    def test_a_replica_may_be_given_by_name(self):
        e = self.engine()
        r = self.router(["http://localhost:%d" % e.port])
        wait_for(lambda: r.events("replica_up"), "the replica by its name")
        self.assertEqual(self.client(r).ask("POST", CHAT, chat()).status, 200)

    def test_a_name_with_several_addresses_is_tried_at_each(self):
        """localhost is 127.0.0.1 first, and ::1 where the machine has that; this engine listens on ::1 alone."""
        try:
            found = {a[4][0] for a in socket.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)}
        except OSError:
            found = set()
        if "::1" not in found:
            self.skipTest("localhost is not ::1 here")
        e = self.engine(host="::1")
        r = self.router(["http://localhost:%d" % e.port])
        wait_for(lambda: r.events("replica_up"), "the replica by its name")
        self.assertEqual(r.events("replica_down"), [])
        self.assertEqual(self.client(r).ask("POST", CHAT, chat()).status, 200)
        self.assertEqual(r.metric("retries_total"), 0)

    def test_all_addresses_of_a_name_are_tried(self):
        """Addresses are those of this test's own hosts file, in both orders."""
        for addresses in (("127.0.0.2", HOST), (HOST, "127.0.0.2"), ("127.0.0.3", "127.0.0.2")):
            with tempfile.NamedTemporaryFile("w") as hosts:
                hosts.write("".join("%s two.test\n" % a for a in addresses))
                hosts.flush()
                wrap = ["unshare", "-m", "sh", "-c",
                        "mount --bind %s /etc/hosts && exec \"$@\"" % hosts.name, "sh"]
                try:
                    subprocess.run(wrap + ["true"], check=True, capture_output=True)
                except (OSError, subprocess.CalledProcessError):
                    self.skipTest("no mount namespace of our own here")
                e = self.engine()
                r = self.router(["http://two.test:%d" % e.port], "--health-interval", "60s",
                                wrap=wrap)
                if HOST not in addresses:
                    r.wait_event("replica_down")
                    continue
                wait_for(lambda: r.events("replica_up"), "the replica by its name")
                self.assertEqual(r.events("replica_down"), [])
                self.assertEqual(self.client(r).ask("POST", CHAT, chat()).status, 200)
                self.assertEqual(r.metric("upstream_connect_failures_total"), 0)
                e.refuse()  # each of its addresses is tried, then the client gets the error
                self.assertEqual(self.client(r).ask("POST", CHAT, chat()).status, 503)
                self.assertEqual(r.metric("upstream_connect_failures_total"), 1)

    def test_a_replica_whose_answers_fail_is_logged_as_down(self):
        """Five broken answers take the replica out without any health check: the log must say so, once."""
        e = self.engine()
        e.closes(b"")
        r = self.router([e], "--health-interval", "3s", "--retries-max", "0")
        for _ in range(5):
            self.assertEqual(self.client(r).ask("POST", CHAT, chat()).status, 502)
        down = r.wait_event("replica_down")
        self.assertEqual((down["replica"], down["error"]), (e.name, "answers failed"))
        r.wait_event("replica_up", 2)
        self.assertEqual(len(r.events("replica_down")), 1)

    def test_a_replica_that_was_never_up_is_logged_as_down_once(self):
        gone = "%s:%d" % (HOST, closed_port())
        r = self.router(["http://" + gone], "--health-interval", "100ms")
        self.assertEqual(r.wait_event("replica_down")["error"], "connection refused")
        failures = 'replica_probe_failures_total{replica="%s"}' % gone
        first = r.metric(failures)
        wait_for(lambda: r.metric(failures) >= first + 4, "it goes on to fail")
        self.assertEqual(len(r.events("replica_down")), 1)

    def test_a_check_that_cannot_connect_is_logged(self):
        """Connecting to a broadcast address fails at once; another check that hangs first must not delay the log
        line."""
        slow = self.engine()
        slow.probes["/health"] = lambda asked: asked.wait_gone()
        r = self.router([slow.url, "http://255.255.255.255:80"], "--health-timeout", "60s",
                        "--health-failures", "1", wait_up=False)
        down = r.wait_event("replica_down")
        self.assertEqual((down["replica"], down["error"]), ("255.255.255.255:80", "the peer cannot be reached"))

    def test_probe_answers_that_are_too_large_are_logged_once(self):
        e = self.engine(models=["m0"])
        e.probes["/metrics"] = lambda asked: asked.send(answer(200, b"# x\n" * 1200000))
        e.probes["/v1/models"] = lambda asked: asked.send(answer_json(
            {"object": "list", "data": [{"id": "m%d" % i} for i in range(5000)]}))
        r = self.router([e], "--scrape-interval", "100ms")
        wait_for(lambda: {x["path"] for x in r.events("replica_probe_too_large")} ==
                 {"/metrics", "/v1/models"}, "both told")
        wait_for(lambda: r.metric("probes_too_large_total") >= 4, "they come again")
        self.assertEqual(len(r.events("replica_probe_too_large")), 2)

    def test_probe_answers_that_hang_or_are_malformed_do_no_harm(self):
        odd = (lambda a: a.wait_gone(5), lambda a: a.send(b"nonsense\r\n\r\n"),
               lambda a: a.send(answer(200, b"\xff\x00{[" * 1000)), lambda a: a.reset(),
               lambda a: a.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n"))
        met, engines = [], [self.engine()]

        def notes(what, handler):
            return lambda asked: (met.append(what), handler(asked))
        for path in ("/metrics", "/v1/models", "/health"):
            for i, handler in enumerate(odd):
                engines.append(self.engine())
                engines[-1].probes[path] = notes((path, i), handler)
        r = self.router(engines, "--health-interval", "100ms", "--scrape-interval", "100ms",
                        "--health-timeout", "200ms", "--health-failures", "100", wait_up=False)
        for path, times in (("/metrics", 2), ("/v1/models", 1), ("/health", 2)):  # a list is asked for seldom
            for i in range(len(odd)):
                wait_for(lambda: met.count((path, i)) >= times, "%s met %d" % (path, i))
        self.assertEqual(self.client(r).ask("POST", CHAT, chat()).status, 200)


if __name__ == "__main__":
    unittest.main()
