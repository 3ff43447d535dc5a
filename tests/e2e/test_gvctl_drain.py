"""gvctl drain --wait and the names of replicas: `https://` is part of a TLS replica's name, and the operator may
spell the name differently. Before, gvctl stripped `https://`, found no such replica, took that for a replica without
requests, and said "nothing
is under way there" while streams ran."""

import unittest

from lib import Case, answer_json, closed_port, wait_for
from lib_cluster import gvctl

TLS = "https://10.0.0.1:8000"


def row(name, requests=0, models=("m",)):
    return {"name": name, "health": "up", "load": {"requests": requests, "requests_of_others": 0},
            "models": {"names": list(models), "count": len(models)}}


class Drain(Case):
    def setUp(self):
        super().setUp()
        self.port = self.engine()

    def scripts(self, name, *looks):
        """Each GET /replicas answers the next of `looks`, then always the last; a change answers that it changed
        `name`."""
        left = list(looks)

        def handler(asked):
            asked.read_body()
            if asked.target == "/replicas":
                body = left.pop(0) if len(left) > 1 else left[0]
            else:
                body = {"ok": True} if name is None else {"ok": True, "replica": name}
            asked.send(answer_json(body))
            asked.close()
        self.port.handler = handler

    def ask(self, *command):
        return gvctl(*command, admin=self.port.port)

    def test_drain_waits_for_the_replica_that_the_router_found(self):
        other = row("b:2")
        for name, spelled in ((TLS, TLS), (TLS, TLS + "/"), (TLS, "https://10.0.0.1:08000"),
                              ("127.0.0.1:28001", "127.0.0.1:028001"), ("127.0.0.1:28001", "http://127.0.0.1:28001/")):
            self.scripts(name, [row(name, 2), other], [row(name, 1), other], [row(name), other])
            self.port.clear()
            status, out, err = self.ask("drain", "--wait", spelled)
            self.assertEqual((status, err), (0, ""), spelled)
            self.assertEqual(out, "%s drains: no router sends it new requests; nothing is in flight there\n" % name)
            asked = [a.target for a in self.port.requests]
            self.assertGreaterEqual(asked.count("/replicas"), 1 + 1 + 5, "it saw requests, and then none five times")
            self.scripts(name, [row(name, 2), other])
            status, out, err = self.ask("drain", "--wait", "--timeout", "1", spelled)
            self.assertEqual((status, out), (1, ""))
            self.assertIn("gave up after 1 s: 2 in flight at " + name, err)

    def test_an_absent_replica_never_counts_as_idle(self):
        for name, spelled in (("c:3", "c:3"), (None, "https://10.0.0.1:8000"), (None, "b:02")):
            self.scripts(name, [row("b:2")])
            status, out, err = self.ask("drain", "--wait", spelled)
            self.assertEqual((status, out), (1, ""), err)
            self.assertIn(": the number of requests in flight there is unknown", err)
            self.assertIn("; the number of requests in flight there is unknown\n", self.ask("drain", spelled)[1])

    def test_drain_wait_tolerates_a_restart_of_the_router(self):
        self.scripts(TLS, [row(TLS, 1)], [row("b:2")], [row("b:2")], [row(TLS, 1)], [row(TLS)])
        self.assertEqual(self.ask("drain", "--wait", TLS)[0], 0)

    def test_the_warning_and_the_count_are_of_the_named_replica(self):
        self.scripts(TLS, [row(TLS, 3, ("m", "n")), row("b:2")])
        for command in ("drain", "remove"):
            status, out, err = self.ask(command, "https://10.0.0.1:08000")
            self.assertEqual(status, 0)
            self.assertIn('no other replica that is up serves "n"', err)
            self.assertTrue(out.startswith(TLS + " is" if command == "remove" else TLS + " drains"), out)
            self.assertIn("; 3 requests are still in flight there", out)

    def test_the_router_reports_which_replica_it_found(self):
        sim = self.sim("--speed-up", "50")
        r = self.router([sim])
        host, _, port = sim.name.rpartition(":")
        odd = "%s:0%s" % (host, port)
        for method, path in (("POST", "/drain"), ("POST", "/undrain"), ("DELETE", "/replicas"), ("POST", "/replicas")):
            got = r.admin(method, "%s?replica=%s" % (path, odd), b"" if method == "POST" else None)
            self.assertEqual((got.status, got.json["ok"], got.json["replica"]), (200, True, sim.name), (method, path))
        self.assertEqual(r.admin("POST", "/replicas?replica=" + odd, b"").json,
                         {"ok": True, "replica": sim.name, "already": True})
        status, out, err = gvctl("drain", "--wait", odd, admin=r.admin_port)
        self.assertEqual((status, out), (0, "%s drains: no router sends it new requests; nothing is in flight there\n"
                                         % sim.name), err)

    def test_a_dead_replica_that_drains_shows_both_states(self):
        """Before, `gvctl undrain` said that a dead replica gets requests again, and `gvctl replicas` showed it only
        as down."""
        dead, sim = "127.0.0.1:%d" % closed_port(), self.sim("--speed-up", "50")
        r = self.router(["http://" + dead, sim])

        def of_dead():
            return next(x for x in r.admin("GET", "/replicas").json if x["name"] == dead)
        wait_for(lambda: of_dead()["why"] == "refuses", "it is down")
        self.assertEqual(gvctl("drain", dead, admin=r.admin_port)[0], 0)
        self.assertEqual((of_dead()["health"], of_dead()["drained"]), ("down", True))
        out = gvctl("replicas", admin=r.admin_port)[1]
        self.assertRegex(out, r"\n%s +down +refuses,drained " % dead)
        self.assertIn("its port refuses connections; drained by an operator, too", out)
        self.assertEqual(gvctl("undrain", dead, admin=r.admin_port)[1],
                         "%s no longer drains, but gets no requests yet: it is down: its port refuses connections\n" % dead)
        self.assertFalse(of_dead()["drained"])
        for verb, said in (("drain", " drains: "), ("undrain", " gets requests again, from all routers\n")):
            self.assertIn(sim.name + said, gvctl(verb, sim.name, admin=r.admin_port)[1])


if __name__ == "__main__":
    unittest.main()
