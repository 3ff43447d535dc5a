"""A router's reports about its cluster: a reader of the log finds the cause of a trouble."""

import json
import os
import signal
import unittest

from lib import HOST, LIMIT, SLOW, answer, closed_port, quiet_for, slow_ms, stopped, wait_for
from lib_cluster import Clustered, Talk, gvctl
from test_engines import FAST


def place(r):
    return "%s:%d" % (HOST, r.gossip_port)


class Alone(Clustered):
    """Routers that should form one cluster and do not."""

    def missed(self, r, seeds):
        e = r.wait_event("join_unanswered")
        self.assertEqual((e["level"], e["seeds"]), ("warn", seeds))
        for word in ("UDP and TCP", "key file and cluster-name", "another router"):
            self.assertIn(word, e["check"])
        ready = r.wait_event("cluster_ready")
        self.assertEqual(ready["alone"], True)
        self.assertNotIn("from", ready)
        self.assertGreaterEqual(ready["ms"], 3000)
        self.assertEqual(len(r.events("join_unanswered")), 1)  # once a minute
        why = wait_for(lambda: r.admin("GET", "/readyz?format=json").json["alone"], "why alone")
        self.assertIn("key file and cluster-name", why)
        self.assertEqual(r.admin("GET", "/readyz").body.decode(), "ready\nalone: %s\n" % why)
        self.assertEqual(r.admin("GET", "/readyz?format=json").json["ready"], True)
        self.assertEqual(r.admin("GET", "/members").json["alone"], why)
        self.assertIn("alone: " + why, gvctl("members", admin=r.admin_port)[1])
        self.assertEqual(r.wait_event("cluster_alone")["why"], why)

    def test_a_router_whose_only_seed_is_itself_reports_it(self):
        """Before, such a router was ready and logged nothing. It logs this after a while, because it may be the only
        router."""
        seed = "%s:%d" % (HOST, closed_port())
        r = self.node("r1", [self.engine()], join=seed, listen=seed)
        self.assertIn("every seed is this router itself", r.wait_event("cluster_alone")["why"])
        self.assertIn("every seed", r.admin("GET", "/readyz").body.decode())
        other = self.node("r2", [], join=r)
        self.wait_alive(other, ["r1", "r2"])
        self.assertEqual(r.admin("GET", "/readyz").body.decode(), "ready\n")

    def test_a_router_with_another_key_is_reported(self):
        e = self.engine()
        first = self.node("r1", [e])
        other = self.node("r2", [e], join=first, key=self.new_key("other.key"))
        self.missed(other, place(first))
        refused = first.wait_event("gossip_refused_key")
        self.assertEqual((refused["level"], refused["from"]), ("warn", place(other)))
        self.assertGreaterEqual(refused["count"], 1)
        # Refusals went on for the three seconds in which the other router was not ready.
        self.assertGreater(first.metric("gossip_refused_key_total"), refused["count"])
        self.assertEqual(len(first.events("gossip_refused_key")), 1)
        self.assertEqual(first.events("join_unanswered"), [])

    def test_a_router_without_a_key_is_reported(self):
        e = self.engine()
        first = self.node("r1", [e])
        other = self.node("r2", [e], "--insecure-gossip", join=first, key="")
        self.missed(other, place(first))
        self.assertEqual(first.wait_event("gossip_refused_key")["from"], place(other))

    def test_a_router_with_another_cluster_name_is_reported(self):
        e = self.engine()
        first = self.node("r1", [e], "--cluster-name", "blue")
        second = self.node("r2", [e], "--cluster-name", "blue", join=first)
        self.wait_alive(second, ["r1", "r2"])
        other = self.node("r3", [e], "--cluster-name", "green", join=first)
        self.missed(other, place(first))
        told = first.wait_event("gossip_other_cluster")
        self.assertEqual((told["level"], told["from"].split(":")[0]), ("warn", HOST))
        self.assertEqual(first.events("gossip_refused_key"), [])
        self.assertGreater(first.metrics()["grapevine_gossip_other_cluster_total"], 0)
        for r in (first, second):
            self.assertIn("another cluster-name asks r1 to join", gvctl("status", admin=r.admin_port)[1])
        self.wait_alive(first, ["r1", "r2"])

    def test_a_seed_with_a_wrong_port_is_reported_and_a_found_seed_is_not(self):
        e = self.engine()
        port = closed_port()
        seeds = "%s:%d" % (HOST, port)
        first = self.node("r1", [e], join=seeds, listen=seeds)  # itself among the seeds
        second = self.node("r2", [e], join=first)
        self.wait_alive(second, ["r1", "r2"])
        ready = second.wait_event("cluster_ready")
        self.assertEqual((ready["from"], ready["alone"]), ("r1", False))
        self.assertEqual(first.wait_event("cluster_ready")["alone"], True)
        wrong = "%s:%d" % (HOST, closed_port())
        self.missed(self.node("r1", [e], join=wrong), wrong)  # takes as long as the others would wait
        for r in (first, second):
            self.assertEqual(r.events("join_unanswered"), [])
            self.assertEqual(r.events("gossip_refused_key"), [])
            for e in r.events():
                self.assertFalse({"value", "detail"} & set(e), e)
                self.assertNotIn("", [v for k, v in e.items() if k == "member"], e)


class Differs(Clustered):
    def test_different_settings_are_reported_and_only_load_is_shared(self):
        sims = [self.sim(*FAST)]
        first = self.node("r1", sims)
        with open(self.key) as f:
            lines = f.read().splitlines()
        lines = ["hash " + "5a" * 32 if l.startswith("hash ") else l for l in lines]
        other_hash = os.path.join(self.folder.name, "hash.key")
        with open(os.open(other_hash, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
            f.write("\n".join(lines) + "\n")
        slow = self.node("slow", sims, "--generation", "30s", join=first)
        foreign = self.node("foreign", sims, "--ttl", "10m", join=first, key=other_hash)
        nodes = {"r1": first, "slow": slow, "foreign": foreign}
        for r in nodes.values():
            self.wait_alive(r, sorted(nodes))
            r.wait_up(1)

        def differs(r):
            return {e["member"]: e["differs"] for e in r.events("member_mismatch")}
        wait_for(lambda: len(differs(first)) == 2, "both are named")
        there = differs(first)
        self.assertEqual(there["slow"], "generation 30s, here 8s")
        self.assertRegex(there["foreign"],
                         "^ttl 600s, here [0-9]+s; the hash line of the key file$")
        self.assertEqual(differs(slow)["r1"], "generation 8s, here 30s")
        self.assertEqual(first.events("member_differs"), [])
        members = self.members(first)
        self.assertEqual(members["slow"]["differs"], there["slow"])
        self.assertNotIn("differs", members["r1"])
        talks = {}
        for name in ("slow", "foreign"):
            talks[name] = Talk(self, len(talks))
            talks[name].ask(nodes[name])
        for name, talk in talks.items():
            self.assertGreater(max(talk.believed(nodes[name]).values()), 100)
            self.assertEqual(first.events("snapshot_failed"), [])
        # Slices of 15 and of 30 s have no number in common: nothing is compared, which is not equal.
        answer = first.admin("GET", "/convergence").json
        self.assertEqual((answer["equal"], answer["comparable"]), (False, False))
        status, out, _ = gvctl("convergence", admin=first.admin_port)
        self.assertEqual(status, 1)
        self.assertIn("cannot be compared", out)
        name = 'reconcile_rounds_total{result="incomparable"}'
        wait_for(lambda: first.metric(name) > 0, "a round without a result", LIMIT)
        for talk in talks.values():  # nor was anything taken over by then
            self.assertEqual(max(talk.believed(first).values()), 0)


class Shown(Clustered):
    def test_versions_policies_and_addresses_are_shown(self):
        e = self.engine()
        first = self.node("r1", [e])
        other = self.node("r2", [e], "--policy", "round_robin", join=first)
        self.wait_alive(first, ["r1", "r2"])
        hint = wait_for(lambda: first.events("member_differs"), "another policy")[0]
        self.assertEqual(hint["member"], "r2")
        self.assertRegex(hint["differs"], "^policy round_robin, here ")
        members = self.members(first)
        self.assertEqual(members["r2"]["policy"], "round_robin")
        self.assertEqual(members["r2"]["hints"], hint["differs"])
        self.assertNotIn("mismatch", members["r2"])
        self.assertEqual(members["r1"]["version"], members["r2"]["version"])
        self.assertEqual((members["r2"]["places"][0]["address"], members["r2"]["places"][0]["kind"]),
                         (place(other), "advertised"))
        shown = gvctl("members", "-v", admin=first.admin_port)[1]
        self.assertRegex(shown, r"(?m)^version: [0-9.]+(\+[0-9a-f]+)? \(2\)$")
        self.assertRegex(shown, r"(?m)^policy: .*round_robin \(1\)")
        self.assertIn("r2: " + hint["differs"], shown)


    def test_a_draining_router_is_shown_as_draining(self):
        """Before, all others showed it as healthy until its last answer was done."""
        e = self.engine()
        first = self.node("r1", [e])
        other = self.node("r2", [e], "--drain-delay", "60s", join=first)
        self.wait_alive(first, ["r1", "r2"])
        self.assertEqual(self.members(first)["r2"]["draining"], False)
        other.signal(signal.SIGTERM)
        wait_for(lambda: self.members(first)["r2"]["draining"], "it is seen to drain")
        self.assertEqual(self.members(first)["r2"]["state"], "alive")
        self.assertRegex(gvctl("members", admin=first.admin_port)[1], r"(?m)^ *r2 +draining ")
        self.assertIn("routers      2: 1 alive, 1 draining", gvctl("status", admin=first.admin_port)[1])


class Names(Clustered):
    def test_two_routers_with_one_name_are_reported(self):
        e = self.engine()
        first = self.node("r1", [e])
        one = self.node("twin", [e], join=first)
        other = self.node("twin", [e], "--join", place(one), join=first, ready=False)
        for r, twin in ((one, other), (other, one)):
            said = r.wait_event("name_taken")
            self.assertEqual((said["level"], said["name"]), ("error", "twin"))
        self.assertEqual(one.events("name_taken")[0].get("at"), place(other))
        twin = wait_for(lambda: self.members(first)["twin"].get("duplicate_at"), "it is shown")
        self.assertIn(twin, (place(one), place(other)))
        self.assertRegex(gvctl("members", admin=first.admin_port)[1],
                         "(?m)^twin: two live routers have this name; one is at " + twin)
        said = first.wait_event("name_taken")
        self.assertEqual(said["member"], "twin")
        self.assertIn(said["at"], (place(one), place(other)))

    def test_a_router_that_knows_only_its_namesake_says_why_it_is_alone(self):
        """The namesake answers, so neither the network nor the key can be the reason."""
        e = self.engine()
        one = self.node("twin", [e])
        other = self.node("twin", [e], join=one)
        for r, twin in ((one, other), (other, one)):
            said = r.wait_event("name_taken")
            self.assertEqual((said["name"], said["at"]), ("twin", place(twin)))
        wait_for(lambda: "has this one's name" in str(other.admin("GET", "/readyz").body),
                 "why it is alone")


class Signals(Clustered):
    def test_sighup_ends_no_router(self):
        e = self.engine()
        for r in (self.router([e]), self.node("r1", [e], "--insecure-gossip", key="")):
            r.signal(signal.SIGHUP)
            self.assertIn("key file", r.wait_event("nothing_to_read")["why"])
            self.assertEqual(r.admin("GET", "/healthz").status, 200)

    def test_a_pause_of_the_router_marks_no_replica_down(self):
        """Probe answers that come during the pause or after it are read, not timed out."""
        engines = [self.engine() for _ in range(3)]
        r = self.router(engines, "--health-interval", "100ms", "--health-timeout", slow_ms(1000),
                        "--health-failures", "1")
        r.wait_up(3)
        checks = []  # checks that wait for their answers
        for e in engines:
            e.probes["/health"] = checks.append

        def answer_all():
            while checks:
                checks.pop().send(answer(200, b""))
        for meanwhile in (True, False):
            wait_for(lambda: len(checks) == 3, "a check under way at each")
            with stopped(r):
                if meanwhile:
                    answer_all()
                quiet_for(1.2 * SLOW, "a standstill that is longer than health-timeout")
            for _ in range(2):  # the router reads its clock between the two
                self.assertEqual(r.admin("GET", "/healthz").status, 200)
            self.assertEqual(r.events("replica_down"), [])
            if not meanwhile:
                answer_all()
        wait_for(lambda: len(checks) == 3, "the answers were read: the next checks")
        self.assertEqual(r.events("replica_down"), [])


if __name__ == "__main__":
    unittest.main()
