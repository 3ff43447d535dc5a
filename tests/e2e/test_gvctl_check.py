"""gvctl status names what needs attention, and --check makes an exit status of it."""

import json
import signal
import unittest

from lib import Case, answer, wait_for
from lib_cluster import Clustered, gvctl
from test_gvctl_status import admin_port, second

CHAT = {"model": "sim", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 4}


def item(severity, kind="replica_out", about="e1", what="replica e1 is down: it rests"):
    return {"severity": severity, "kind": kind, "about": about, "what": what, "since_ms": 1000, "hurts": "nobody yet",
            "command": "gvctl replicas"}


class Check(Case):
    def setUp(self):
        super().setUp()
        self.port = self.engine()

    def check(self, *args):
        return gvctl("status", "--check", *args, admin=self.port.port)

    def test_the_exit_status_is_that_of_the_worst_problem(self):
        for items, status in (([], 0), ([item("grey")], 0), ([item("amber"), item("grey")], 3), ([item("red"), item("amber")], 1)):
            admin_port(self.port, "r1", attention=items)
            code, out, err = self.check()
            self.assertEqual((code, err), (status, ""), out)
            self.assertEqual(gvctl("status", admin=self.port.port)[0], 0)

    def test_problems_come_first_in_two_lines_each(self):
        admin_port(self.port, "r1", attention=[item("red", what="model m has no usable replica"), item("amber")], now_ms=61000)
        self.assertTrue(self.check()[1].startswith(
            "red          model m has no usable replica, for 60 s\n"
            "             hurts nobody yet; next: gvctl replicas\n"
            "amber        replica e1 is down: it rests, for 60 s\n"
            "             hurts nobody yet; next: gvctl replicas\nrouter "), self.check()[1])
        admin_port(self.port, "r1", attention=[])
        self.assertTrue(self.check()[1].startswith("problems     none\nrouter "))

    def test_many_dead_replicas_are_folded(self):
        """Before, each took two lines: thirty dead replicas hid all else."""
        dead = [item("amber", about="e%d" % i, what="replica e%d is down" % i) for i in range(17)]
        rest = [item("amber", "router_gone", "r2", "router r2 is gone")]
        admin_port(self.port, "r1", attention=dead + rest)
        out = self.check()[1]
        for i in range(17):
            self.assertEqual("replica e%d is down" % i in out, i < 5, out)
        self.assertIn("amber        router r2 is gone, for ", out)
        self.assertIn("\n             and 12 more: gvctl replicas\nrouter ", out)
        admin_port(self.port, "r1", attention=dead[:5])
        self.assertNotIn(" more: ", self.check()[1])

    def test_an_older_router_reports_no_verdict(self):
        admin_port(self.port, "r1")
        self.assertNotIn("problems", self.check()[1])
        self.assertEqual(json.loads(self.check("--json")[1])["attention"], {"worst": "unknown", "more": 0, "items": []})

    def test_failures_at_another_router_are_reported(self):
        other = self.engine()
        members = [{"name": "r1", "state": "alive", "self": True, "admin": self.port.name},
                   {"name": "r2", "state": "alive", "self": False, "admin": other.name}]
        admin_port(self.port, "r1", members, attention=[item("amber")])
        admin_port(other, "r2", members, figures=[second(requests=50, cut=7, queue_full=3), second(requests=50, status_5xx=1)])
        code, out, _ = self.check()
        self.assertEqual(code, 1)
        self.assertIn("red          8 of 100 requests failed in the last minute at router r2: 1 with a 5xx, 7 cut\n", out)
        self.assertIn("red          overload: 3 of 100 requests were refused in the last minute at router r2, as the queue was full\n", out)
        self.assertEqual([x["severity"] for x in json.loads(self.check("--json")[1])["attention"]["items"]], ["red", "red", "amber"])

    def test_routers_that_keep_differing_are_reported(self):
        admin_port(self.port, "r1", [{"name": "r1", "state": "alive", "self": True, "admin": self.port.name}], attention=[])
        rest, asked = self.port.handler, []

        def handler(call, differ=lambda: True):
            if call.path != "/convergence":
                return rest(call)
            asked.append(call)
            call.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 25\r\n\r\n"
                      b'{"equal":false,"nodes":1}'if differ() else
                      b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: 25\r\n\r\n"
                      b'{"equal":true,"nodes":{}}')
            call.close()
        self.port.handler = handler
        code, out, _ = self.check()
        self.assertEqual((code, len(asked)), (3, 5))
        self.assertIn("amber        the routers hold different states\n", out)
        self.port.handler = lambda call: handler(call, lambda: len(asked) < 7)
        self.assertEqual(self.check()[0], 0)

    def test_an_unreachable_router_and_a_wrong_command_line(self):
        self.port.refuse()
        self.assertEqual(self.check()[0], 1)
        self.assertEqual(gvctl("replicas", "--check", admin=self.port.port)[0], 2)


class Cluster(Clustered):
    def status(self, router):
        code, out, err = gvctl("status", "--check", admin=router.admin_port)
        self.assertEqual(err, "")
        return code, out

    def items(self, router):
        return {(x["kind"], x["about"]): x["severity"] for x in router.admin("GET", "/attention").json["items"]}

    def test_a_killed_router_is_a_problem_and_a_leaving_router_is_not(self):
        """A killed router is a problem, but not of the network; a router that left is no problem."""
        sim = self.sim()
        one, two, three = self.cluster(3, [sim])
        wait_for(lambda: self.items(one) == {}, "nothing to see")
        self.assertEqual(self.status(one)[0], 0)
        two.signal(signal.SIGTERM)
        wait_for(lambda: self.members(one)["r2"]["state"] == "left", "r2 to leave")
        self.assertEqual(self.items(one), {})
        three.kill()
        three.stopped = True
        seen = []
        wait_for(lambda: seen.append(self.status(one)) or "router r3 is gone" in seen[-1][1], "r3 to be gone")
        for code, out in seen:
            self.assertIn(code, (0, 3), out)
            for word in ("network", "filtered", "reached"):
                self.assertNotIn(word, out)
        self.assertEqual((seen[-1][0], self.items(one)), (3, {("router_gone", "r3"): "amber"}))
        self.assertIn("next: gvctl forget-member r3, if it will not be back\n", seen[-1][1])
        self.node("r4", [sim], join=one)
        wait_for(lambda: self.items(one) == {("router_old", "r3"): "grey"}, "a successor")
        self.assertEqual(self.status(one)[0], 0)

    def test_clients_with_a_wrong_key_are_reported(self):
        """A 401 is the client's own error, so before, nothing reported that a key was changed."""
        one = self.node("r1", [self.engine(models=["sim"]).replies(answer(401, b"{}"))])
        self.assertEqual(self.client(one).post("/v1/chat/completions", CHAT).status, 401)
        wait_for(lambda: ("clients_key", "r1") in self.items(one), "clients without a key")
        code, out = self.status(one)
        self.assertEqual(code, 3)
        self.assertIn("1 of 1 requests had no key or a wrong one in the last minute at router r1", out)
        self.assertIn("next: gvctl key list\n", out)

    def test_a_member_that_an_operator_forgets(self):
        one, two, three = self.cluster(3, [self.sim()])

        def forget(name):
            return gvctl("forget-member", name, admin=one.admin_port)
        code, out, err = forget("r3")
        self.assertEqual((code, out), (1, ""))
        self.assertIn('No router "r3" is dead or has left', err)
        three.kill()
        three.stopped = True
        for r in (one, two):
            wait_for(lambda r=r: self.members(r)["r3"]["state"] == "dead", "r3 to be dead")
        self.assertEqual(forget("r3"), (0, "router r3 is no longer shown\n", ""))
        for r in (one, two):
            wait_for(lambda r=r: "r3" not in self.members(r), "nobody to show it")
        wait_for(lambda: self.items(one) == {}, "nothing to see")
        self.assertIn("r3", gvctl("events", "--last", "5", admin=one.admin_port)[1])
        self.node("r3", [], join=one, listen="127.0.0.1:%d" % three.gossip_port)
        self.wait_alive(one, ["r1", "r2", "r3"])

    def test_engines_that_die_one_by_one_and_a_rolling_restart(self):
        sims = [self.sim() for _ in range(2)]
        one = self.node("r1", sims)
        one.wait_listed(2)
        for sim in sims:  # a rollout
            one.admin("POST", "/drain?replica=" + sim.name)
            self.assertEqual(self.status(one)[0], 0)
            self.assertEqual(self.items(one), {})
            one.admin("POST", "/undrain?replica=" + sim.name)
        wait_for(lambda: self.items(one) == {}, "nothing to see")
        sims[0].kill()
        wait_for(lambda: ("replica_out", sims[0].name) in self.items(one), "the first one's death")
        self.assertEqual(self.status(one)[0], 3)
        sims[1].kill()
        wait_for(lambda: ("no_replica", "") in self.items(one), "no replica")
        self.assertEqual(self.status(one)[0], 1)
        self.assertEqual(self.client(one).post("/v1/chat/completions", CHAT).status, 503)
        wait_for(lambda: ("clients_fail", "r1") in self.items(one), "clients that fail")
        self.assertIn("1 of 1 requests failed in the last minute at router r1: 1 with a 5xx, 0 cut", self.status(one)[1])


if __name__ == "__main__":
    unittest.main()
