"""Several routers on real sockets: do they find each other, agree, and heal?"""

import json
import os
import re
import signal
import socket
import subprocess
import unittest

from lib import HOST, answer_json, binary, closed_port, pace, wait_for
from lib_cluster import Clustered, Talk, gvctl
from lib_dns import Dns
from test_engines import chat, message


class Members(Clustered):
    def test_three_routers_find_each_other_and_agree(self):
        e = self.engine()
        nodes = self.cluster(3, [e])
        self.converge(nodes[0], 3)
        for r in nodes:
            m = self.members(r)
            self.assertEqual(len([x for x in m.values() if x.get("self")]), 1)
            others = [x for x in m.values() if not x.get("self")]
            for other in others:
                self.assertIn("incarnation", other)
            text = r.admin("GET", "/metrics").body.decode()
            self.assertIn("grapevine_gossip_", text)
        status, out, err = gvctl("members", "-o", "wide", admin=nodes[1].admin_port)
        self.assertEqual((status, err), (0, ""))
        for name in ("r1", "r2", "r3"):
            self.assertRegex(out, r"(?m)^[* ] %s +alive +\S+ +\S+ +\S+ +\d+ (s|min) ago( \+\d)?" % name)
        got = nodes[2].admin("GET", "/convergence").json
        self.assertEqual((got["equal"], sorted(got["nodes"])), (True, ["r1", "r2", "r3"]))
        self.assertEqual(got["differ"], [])
        stats = nodes[2].admin("GET", "/members").json["stats"]
        self.assertIn("alive", stats["gossip"]["frames_in"])
        self.assertGreater(stats["state"]["index_bytes_max"], 0)

    def wait_met(self, r, names):
        """All of them are alive for r, each with an address and a session."""
        def met():
            return sorted(n for n, m in self.members(r).items() if m["state"] == "alive" and
                          (m["self"] or (m["session"] and m["address"])))
        wait_for(lambda: met() == sorted(names), "%s met; there are %s" %
                 (names, self.members(r)), step=0.02)

    def one_seed(self, listen, loopback):
        """The README's lines made a star: the two that joined had no session with each other, and when their seed left,
        each believed the other dead."""
        sim = self.sim()
        first = self.node("r1", [sim], listen=listen)
        seed = "%s:%d" % (loopback, first.gossip_port)
        nodes = [first] + [self.node(n, [sim], listen=listen, join=seed) for n in ("r2", "r3")]
        for r in nodes:
            self.wait_met(r, ["r1", "r2", "r3"])
        status, out, err = gvctl("members", admin=nodes[1].admin_port)
        self.assertRegex(out, r"(?m)^  r3 +alive +%s:\d+ " % re.escape(
            "[0:0:0:0:0:0:0:1]" if ":" in loopback else HOST))
        first.signal(signal.SIGKILL)
        first.stopped = True
        first.wait()
        for r in nodes[1:]:
            wait_for(lambda: self.members(r)["r1"]["state"] == "dead", "r1 dead")
        self.converge(nodes[1], 2)
        talk = Talk(self, 1)
        talk.ask(nodes[1])
        wait_for(lambda: max(talk.believed(nodes[2]).values()) > 0, "r3 knows what r2 was asked")
        for r in nodes[1:]:
            self.wait_met(r, ["r2", "r3"])
            self.assertEqual([e["member"] for e in r.events("member_dead")], ["r1"])

    def test_a_mesh_made_by_one_seed_outlives_the_seed(self):
        self.one_seed("0.0.0.0:0", HOST)

    def test_one_seed_makes_a_mesh_over_ipv6(self):
        try:
            with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
                s.bind(("::1", 0))
        except OSError as e:
            self.skipTest("skipped: this machine has no IPv6 loopback (%s)" % e)
        self.one_seed("[::]:0", "[::1]")

    def test_a_single_node_opens_no_gossip_port_and_needs_no_key(self):
        r = self.router([self.engine()])
        self.assertIsNone(r.gossip_port)
        for path in ("/members", "/convergence"):
            got = r.admin("GET", path)
            self.assertEqual(got.status, 409)
            self.assertIn("alone", got.json["error"]["message"])
        status, _, err = gvctl("convergence", "--wait", admin=r.admin_port)
        self.assertEqual(status, 1)
        self.assertIn("alone", err)
        with open("/proc/net/udp") as f:
            inodes = {line.split()[9] for line in f.readlines()[1:]}
        fds = os.listdir("/proc/%d/fd" % r.pid)
        mine = {os.readlink("/proc/%d/fd/%s" % (r.pid, fd)) for fd in fds}
        self.assertFalse({"socket:[%s]" % i for i in inodes} & mine)

    def test_a_killed_router_and_its_load_are_gone_in_seconds(self):
        sim = self.sim("--decode-base-ms", "50")
        nodes = self.cluster(3, [sim])
        wait_for(lambda: sim.name in str(nodes[1].events("replica_up")), "the replica at r2")
        c = self.client(nodes[1])
        c.send(chat({"model": "sim", "max_tokens": 2000, "stream": True,
                     "messages": [message("user", "go on")]}))
        c.head()

        def remote(r):
            rows = r.admin("GET", "/replicas").json
            return [x for x in rows if x["name"] == sim.name][0]["load"]["requests_of_others"]
        for r in (nodes[0], nodes[2]):
            wait_for(lambda: remote(r) == 1, "the load of r2 at another")
        port = nodes[1].gossip_port
        nodes[1].signal(signal.SIGKILL)
        nodes[1].stopped = True
        nodes[1].wait()
        for r in (nodes[0], nodes[2]):
            wait_for(lambda: remote(r) == 0, "no load of r2", step=0.02)
        for r in (nodes[0], nodes[2]):
            wait_for(lambda: self.members(r)["r2"]["state"] in ("dead", "left"), "r2 dead")
        again = self.node("r2", [sim], join=nodes[0], listen="%s:%d" % (HOST, port))
        for r in (nodes[0], nodes[2], again):
            self.wait_alive(r, ["r1", "r2", "r3"])
        self.converge(nodes[0], 3)

    def test_convergence_reports_joining_missing_and_dead_routers(self):
        """Before it joined any other, a router counted as equal with itself, and dead routers counted as a network
        fault."""
        e = self.engine()
        early = self.node("r0", [e], join="%s:%d" % (HOST, closed_port()), ready=False)
        status, out, err = gvctl("convergence", admin=early.admin_port)
        if early.admin("GET", "/readyz").status == 503:  # for 3 s
            self.assertEqual((status, err), (1, ""))
            self.assertIn("The routers do not agree yet: r0 is joining.", out)
            self.assertEqual(early.admin("GET", "/convergence").json["equal"], False)
        early.stop()
        nodes = self.cluster(3, [e])
        self.assertIn("All 3 living routers hold the same state", self.converge(nodes[0], 3))
        status, out, err = gvctl("convergence", "--members", "5", admin=nodes[0].admin_port)
        self.assertEqual((status, err), (1, ""))
        self.assertIn("Too few routers are alive: 3 of 5.", out)
        nodes[2].signal(signal.SIGKILL)
        nodes[2].stopped = True
        nodes[2].wait()
        status, out, err = gvctl("convergence", admin=nodes[0].admin_port)
        if "Not asked" not in out:  # r3 is not known to be dead yet
            self.assertEqual((status, err), (1, ""))
            self.assertIn("It is not known whether the routers agree: r3 did not answer.", out)
            self.assertNotIn("on its way", out)
        wait_for(lambda: self.members(nodes[0])["r3"]["state"] == "dead", "r3 dead")
        out = self.converge(nodes[0], 2)
        self.assertIn("All 2 living routers hold the same state", out)
        self.assertIn("Not asked: r3 (dead).", out)

    def test_convergence_describes_each_state_in_words(self):
        """Momentary states of a cluster, at a router that reports them for as long as it is asked."""
        fine = {"ready": True, "registry": "1", "whole_index": "2", "reports": "4", "index": []}
        other = dict(fine, index=[{"generation": 7, "digest": "5", "entries": 1}])
        joins = dict(fine, ready=False)
        gone = {"error": "connection refused"}
        dead = {"equal": True, "not_asked": {"r2": "dead"}, "nodes": {"r1": fine}}
        since = {"now_ms": 1767229200000, "equal_ms": 1767229150000, "not_since_ms": 1767229159000}
        for said, sentence, below, words_in, words_not in (
                ({"equal": False, "nodes": {"r1": joins}}, "The routers do not agree yet: r1 is joining.", "", [], []),
                ({"equal": False, "nodes": {"r1": joins, "r2": joins}},
                 "The routers do not agree yet: r1, r2 are joining.", "", [], []),
                ({"equal": False, "differ": ["index"], "nodes": {"r1": fine, "r2": gone}},
                 "It is not known whether the routers agree: r2 did not answer.", "",
                 ["r2  ", "connection refused"], ["classes that differ"]),
                ({"equal": False, "comparable": False, "nodes": {"r1": fine, "r2": other}},
                 "The routers' states cannot be compared: no time slice is kept by all of them. Compare their clocks and "
                 "settings (gvctl members).", "", [], []),
                (dict(since, equal=False, comparable=True, differ=["registry", "index"], nodes={"r1": fine, "r2": other}),
                 "The routers do not agree on the list of replicas, or operators' changes to it; nor on which "
                 "replica holds which prefix, for 41 s. They last held the same state 50 s ago.",
                 "Updates may still be on their way: gvctl convergence --wait asks until the routers agree.\n",
                 ["classes that differ: registry, index", "time slices that differ: 7"], ["not answer"]),
                ({"equal": False, "comparable": True, "differ": ["later"], "nodes": {"r1": fine, "r2": other}},
                 "The routers do not agree on later.", None, [], []),
                (dead, "Only one router is alive, so no state differs.", "Not asked: r2 (dead).\n", [], [])):
            admin = self.engine().closes(answer_json(said))
            status, out, err = gvctl("convergence", admin=admin.port)
            self.assertEqual((status, err), (0 if said["equal"] else 1, ""), out)
            self.assertEqual(out.split("\n")[0], sentence)
            if below is not None:
                self.assertEqual(out, sentence + "\n" + below, "digests are for -v")
            status, out, err = gvctl("convergence", "-v", admin=admin.port)
            self.assertIn("REGISTRY", out)
            for word in words_in:
                self.assertIn(word, out)
            for word in words_not:
                self.assertNotIn(word, out)

    def test_convergence_reports_since_when_routers_disagree(self):
        """Known only from calls: the router keeps when all were last seen equal, and when they were first seen to
        differ."""
        nodes = self.cluster(2, [self.engine()])
        self.converge(nodes[0], 2)
        equal = nodes[0].admin("GET", "/convergence").json
        while not equal["equal"]:  # reports of loads are on their way now and then
            equal = nodes[0].admin("GET", "/convergence").json
        self.assertEqual((equal["equal_ms"], equal["not_since_ms"]), (equal["now_ms"], 0))
        nodes[1].signal(signal.SIGSTOP)
        first = nodes[0].admin("GET", "/convergence").json
        nodes[1].signal(signal.SIGCONT)
        if first["nodes"].get("r2", {}).get("error"):  # else it was dead already
            self.assertGreaterEqual(first["not_since_ms"], equal["equal_ms"])
            self.assertGreaterEqual(first["equal_ms"], equal["equal_ms"])
        self.converge(nodes[0], 2)

    def test_convergence_with_wait_also_waits_for_the_routers_start(self):
        port = closed_port()
        p = subprocess.Popen([binary("gvctl"), "--admin", "http://%s:%d" % (HOST, port),
                              "convergence", "--wait", "--members", "2"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        first = self.node("r1", [self.engine()], "--admin-listen", "%s:%d" % (HOST, port))
        self.node("r2", [], join=first)
        out, err = p.communicate(timeout=60)
        self.assertEqual((p.returncode, err), (0, b""))
        self.assertIn(b"All 2 living routers hold the same state", out)
        status, _, err = gvctl("convergence", "--wait", "--timeout", "1", admin=closed_port())
        self.assertEqual(status, 1)
        self.assertIn("Is grapevine running?", err)

    def test_gvctl_gives_up_on_a_hung_router_after_its_timeout(self):
        nodes = self.cluster(3, [self.engine()])
        nodes[2].signal(signal.SIGSTOP)
        for args in (("replicas",), ("convergence",), ("convergence", "--wait"), ("drain", "a:1")):
            status, out, err = gvctl(*args, "--timeout", "1", admin=nodes[2].admin_port)
            self.assertEqual((status, out), (1, ""))
            self.assertIn("did not answer within 1 s", err)
        wait_for(lambda: self.members(nodes[0])["r3"]["state"] == "dead", "r3 dead")
        self.assertIn("Not asked: r3 (dead).", self.converge(nodes[0], 2))
        nodes[2].signal(signal.SIGCONT)
        self.wait_alive(nodes[0], ["r1", "r2", "r3"])
        self.converge(nodes[0], 3)

    def test_a_call_to_a_member_that_is_marked_dead_ends_at_once(self):
        """The request has to come before r2 is believed dead, which takes a moment: if not, the test tries once
        more."""
        nodes, out = self.cluster(2, [self.engine()]), "Not asked"
        for _ in range(10):
            self.wait_alive(nodes[0], ["r1", "r2"])
            nodes[1].signal(signal.SIGSTOP)
            _, out, _ = gvctl("convergence", "-v", admin=nodes[0].admin_port)
            nodes[1].signal(signal.SIGCONT)
            if "Not asked" not in out:
                break
        self.assertIn("r2 did not answer", out)
        self.assertNotIn("time", out, "it was given up before the time was up")

    def test_a_leaving_router_announces_that_it_leaves(self):
        nodes = self.cluster(3, [self.engine()])
        nodes[2].signal(signal.SIGTERM)
        nodes[2].wait()
        for r in nodes[:2]:
            wait_for(lambda: self.members(r)["r3"]["state"] == "left", "r3 has left")
        self.converge(nodes[0], 2)

    def test_signals_during_shutdown_change_nothing(self):
        """Threads watch the router's key file, and they receive signals as well."""
        for number in (signal.SIGTERM, signal.SIGHUP):
            r = self.node("r1", [self.engine()])
            r.signal(signal.SIGTERM)
            while r.popen.poll() is None:
                r.signal(number)
                pace(0.0005)
            self.assertEqual(r.wait(), 0)

    def test_a_paused_router_comes_back_by_itself(self):
        nodes = self.cluster(3, [self.engine()])
        nodes[2].signal(signal.SIGSTOP)
        for r in nodes[:2]:
            wait_for(lambda: self.members(r)["r3"]["state"] != "alive", "r3 missed")
        nodes[2].signal(signal.SIGCONT)
        for r in nodes:
            self.wait_alive(r, ["r1", "r2", "r3"])
        self.converge(nodes[2], 3)

    def test_the_seed_may_start_last(self):
        """An absent seed is retried for ever."""
        e = self.engine()
        port = closed_port()
        early = self.node("r2", [e], join="%s:%d" % (HOST, port))
        self.assertEqual(self.alive(early), ["r2"])
        late = self.node("r1", [e], listen="%s:%d" % (HOST, port))
        for r in (early, late):
            self.wait_alive(r, ["r1", "r2"])
        self.converge(late, 2)

    def test_seeds_may_be_names_and_include_the_router_itself(self):
        e = self.engine()
        port = closed_port()
        first = self.node("r1", [e], "--join", "localhost:%d" % port,
                          listen="%s:%d" % (HOST, port))
        second = self.node("r2", [e], "--join", "localhost:%d" % port)
        for r in (first, second):
            self.wait_alive(r, ["r1", "r2"])
        nobody = Dns({})
        self.addCleanup(nobody.stop)
        lost = self.node("r3", [e], "--join", "no-such-host.test", "--dns-server", nobody.address,
                         join=first)
        lost.wait_event("join_unresolved")
        self.wait_alive(lost, ["r1", "r2", "r3"])

    def test_ipv6(self):
        try:
            s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
            s.bind(("::1", 0))
            s.close()
        except OSError:
            self.skipTest("no IPv6 here")
        e = self.engine()
        first = self.node("r1", [e], listen="[::1]:0")
        second = self.node("r2", [e], listen="[::]:0", join="[::1]:%d" % first.gossip_port)
        for r in (first, second):
            self.wait_alive(r, ["r1", "r2"])
        self.converge(first, 2)
        both = self.node("r3", [e], join="%s:%d" % (HOST, second.gossip_port))  # IPv4 to [::]
        self.wait_alive(both, ["r1", "r2", "r3"])


if __name__ == "__main__":
    unittest.main()
