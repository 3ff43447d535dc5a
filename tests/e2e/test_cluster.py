"""Several routers on real sockets: do they find each other, agree, and heal?"""

import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from lib import HOST, LIMIT, SLOW, Case, answer_json, binary, closed_port, wait_for
from lib_dns import Dns
from test_engines import CHAT, FAST, chat, message, words

FAST_PROBES = ("--scrape-interval", "200ms")


def gvctl(*args, stdin=b"", admin=None, limit=60):
    command = [binary("gvctl")]
    if admin:
        command += ["--admin", "http://%s:%d" % (HOST, admin)]
    p = subprocess.run(command + list(args), input=stdin, capture_output=True, timeout=limit,
                       env={k: v for k, v in os.environ.items() if not k.startswith("GRAPEVINE_")})
    return p.returncode, p.stdout.decode(), p.stderr.decode()


def run_grapevine(*args):
    p = subprocess.run([binary("grapevine"), "--listen", HOST + ":0", "--admin-listen", HOST + ":0"]
                       + list(args), capture_output=True, timeout=LIMIT)
    return p.returncode, p.stderr.decode()


class Talk:
    """One conversation whose turns go to routers in turn."""

    def __init__(self, case, seed):
        self.case, self.seed, self.turn = case, seed, 0
        self.messages = [message("system", words("system%d" % seed, 300))]
        self.where, self.cached, self.prompt = [], [], []

    def body(self):
        return {"model": "sim", "messages": self.messages, "max_tokens": 8}

    def ask(self, router):
        self.turn += 1
        self.messages.append(message("user", words("%d %d" % (self.seed, self.turn), 300)))
        got = self.case.client(router).post(CHAT, self.body())
        self.case.assertEqual(got.status, 200, got)
        usage = got.json["usage"]
        self.messages.append(message("assistant", got.json["choices"][0]["message"]["content"]))
        self.where.append(got.get("x-grapevine-replica"))
        self.cached.append((usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0))
        self.prompt.append(usage["prompt_tokens"])

    def believed(self, router):
        """{replica: cached tokens} as the router would explain the next turn."""
        got = router.admin("POST", "/explain", json.dumps(self.body()).encode())
        self.case.assertEqual(got.status, 200, got)
        return {r["replica"]: r["cached_tokens"] for r in got.json["replicas"]}


class Clustered(Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.key = self.new_key("cluster.key")

    def tearDown(self):
        super().tearDown()
        self.folder.cleanup()

    def new_key(self, name):
        path = os.path.join(self.folder.name, name)
        status, out, err = gvctl("keygen", "--out", path)
        self.assertEqual((status, err), (0, ""))
        return path

    def read_key(self):
        with open(self.key) as f:
            return f.read()

    def node(self, name, engines, *args, join=None, listen=HOST + ":0", key=None, ready=True,
             **how):
        command = ["--gossip-listen", listen, "--node-name", name, *FAST_PROBES]
        command += ["--cluster-key-file", key or self.key] if key != "" else []
        if join is not None:
            command += ["--join", join if isinstance(join, str) else
                        "%s:%d" % (HOST, join.gossip_port)]
        r = self.router([getattr(e, "url", e) for e in engines], *command, *args, wait_up=False,
                        **how)
        if ready:
            wait_for(lambda: r.admin("GET", "/readyz").status == 200, name + " ready")
        return r

    def cluster(self, n, engines, *args):
        first = self.node("r1", engines, *args)
        rest = [self.node("r%d" % i, engines, *args, join=first) for i in range(2, n + 1)]
        nodes = [first] + rest
        for r in nodes:
            self.wait_alive(r, ["r%d" % i for i in range(1, n + 1)])
        return nodes

    def members(self, r):
        got = r.admin("GET", "/members")
        self.assertEqual(got.status, 200, got)
        return {m["name"]: m for m in got.json["members"]}

    def alive(self, r):
        return sorted(n for n, m in self.members(r).items() if m["state"] == "alive")

    def wait_alive(self, r, names, limit=LIMIT):
        wait_for(lambda: self.alive(r) == sorted(names),
                 "members %s (there are %s)" % (names, self.alive(r)), limit, step=0.02)

    def converge(self, r, members, timeout=15):
        status, out, err = gvctl("convergence", "--wait", "--timeout", str(int(timeout * SLOW)), "--members",
                                 str(members), admin=r.admin_port)
        if status != 0:
            print(r.admin("GET", "/convergence").body.decode())
        self.assertEqual(status, 0, out + err)
        return out


class Members(Clustered):
    def test_three_see_each_other_and_agree(self):
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
        status, out, err = gvctl("members", admin=nodes[1].admin_port)
        self.assertEqual((status, err), (0, ""))
        for name in ("r1", "r2", "r3"):
            self.assertRegex(out, r"(?m)^[* ] %s +alive +\S+ +(\d\d:\d\d:\d\d|\d+-\d\d-\d\d)( \+\d)? " % name)
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
        """The README's lines made a star: the two that joined had no session with each other, and
        when their seed went each held the other for dead."""
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

    def test_one_seed_makes_a_mesh_that_outlives_it(self):
        self.one_seed("0.0.0.0:0", HOST)

    def test_one_seed_makes_a_mesh_of_ipv6(self):
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

    def test_a_killed_router_is_gone_in_seconds_and_its_load_with_it(self):
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

    def test_convergence_says_what_is_amiss(self):
        """It was equal with itself before it had joined anybody, and blamed the way for the dead."""
        e = self.engine()
        early = self.node("r0", [e], join="%s:%d" % (HOST, closed_port()), ready=False)
        status, out, err = gvctl("convergence", admin=early.admin_port)
        if early.admin("GET", "/readyz").status == 503:  # for 3 s
            self.assertEqual((status, err), (1, ""))
            self.assertIn("not equal: r0 is joining", out)
            self.assertEqual(early.admin("GET", "/convergence").json["equal"], False)
        early.stop()
        nodes = self.cluster(3, [e])
        self.assertIn("equal: all 3 living routers", self.converge(nodes[0], 3))
        status, out, err = gvctl("convergence", "--members", "5", admin=nodes[0].admin_port)
        self.assertEqual((status, err), (1, ""))
        self.assertIn("too few: 3 of 5 routers", out)
        nodes[2].signal(signal.SIGKILL)
        nodes[2].stopped = True
        nodes[2].wait()
        status, out, err = gvctl("convergence", admin=nodes[0].admin_port)
        if "not asked" not in out:  # it is not known to be dead yet
            self.assertEqual((status, err), (1, ""))
            self.assertIn("not equal: r3 did not answer", out)
            self.assertNotIn("on its way", out)
            self.assertNotIn("classes that differ", out)
        wait_for(lambda: self.members(nodes[0])["r3"]["state"] == "dead", "r3 dead")
        out = self.converge(nodes[0], 2)
        self.assertIn("equal: all 2 living routers", out)
        self.assertIn("not asked: r3 (dead)", out)

    def test_convergence_in_words(self):
        """What lasts for moments in a cluster, by a router that says so for as long as it is asked."""
        fine = {"ready": True, "registry": "1", "whole_index": "2", "log": "3", "reports": "4", "index": []}
        other = dict(fine, index=[{"generation": 7, "digest": "5", "entries": 1}])
        joins = dict(fine, ready=False)
        gone = {"error": "connection refused"}
        dead = {"equal": True, "not_asked": {"r2": "dead"}, "nodes": {"r1": fine}}
        for said, words_in, words_not in (
                ({"equal": False, "nodes": {"r1": joins}}, ["not equal: r1 is joining"], []),
                ({"equal": False, "nodes": {"r1": joins, "r2": joins}}, ["r1, r2 are joining"], []),
                ({"equal": False, "differ": ["index"], "nodes": {"r1": fine, "r2": gone}},
                 ["not equal: r2 did not answer", "r2  ", "connection refused"],
                 ["on its way", "classes that differ"]),
                ({"equal": False, "comparable": False, "nodes": {"r1": fine, "r2": other}}, ["not comparable"], []),
                ({"equal": False, "comparable": True, "differ": ["index"], "nodes": {"r1": fine, "r2": other}},
                 ["on its way", "classes that differ: index", "time slices that differ: 7"], ["not answer"]),
                (dead, ["equal: there is one living router", "not asked: r2 (dead)"], ["not equal"])):
            admin = self.engine().closes(answer_json(said))
            status, out, err = gvctl("convergence", admin=admin.port)
            self.assertEqual((status, err), (0 if said["equal"] else 1, ""), out)
            for word in words_in:
                self.assertIn(word, out)
            for word in words_not:
                self.assertNotIn(word, out)

    def test_who_waits_for_agreement_waits_for_the_start_too(self):
        port = closed_port()
        p = subprocess.Popen([binary("gvctl"), "--admin", "http://%s:%d" % (HOST, port),
                              "convergence", "--wait", "--members", "2"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        first = self.node("r1", [self.engine()], "--admin-listen", "%s:%d" % (HOST, port))
        self.node("r2", [], join=first)
        out, err = p.communicate(timeout=60)
        self.assertEqual((p.returncode, err), (0, b""))
        self.assertIn(b"equal: all 2 living routers", out)
        status, _, err = gvctl("convergence", "--wait", "--timeout", "1", admin=closed_port())
        self.assertEqual(status, 1)
        self.assertIn("Is grapevine running?", err)

    def test_a_router_that_hangs_keeps_nobody_waiting(self):
        nodes = self.cluster(3, [self.engine()])
        nodes[2].signal(signal.SIGSTOP)
        for args in (("replicas",), ("convergence",), ("convergence", "--wait"), ("drain", "a:1")):
            status, out, err = gvctl(*args, "--timeout", "1", admin=nodes[2].admin_port)
            self.assertEqual((status, out), (1, ""))
            self.assertIn("did not answer within 1 s", err)
        wait_for(lambda: self.members(nodes[0])["r3"]["state"] == "dead", "r3 dead")
        self.assertIn("not asked: r3 (dead)", self.converge(nodes[0], 2))
        nodes[2].signal(signal.SIGCONT)
        self.wait_alive(nodes[0], ["r1", "r2", "r3"])
        self.converge(nodes[0], 3)

    def test_a_question_ends_with_who_dies_of_it(self):
        nodes = self.cluster(2, [self.engine()])
        nodes[1].signal(signal.SIGSTOP)
        status, out, err = gvctl("convergence", admin=nodes[0].admin_port)
        if "not asked" not in out:
            self.assertIn("r2 did not answer", out)
            self.assertNotIn("time", out, "it was given up before the time was up")
        nodes[1].signal(signal.SIGCONT)

    def test_a_router_that_leaves_says_so(self):
        nodes = self.cluster(3, [self.engine()])
        nodes[2].signal(signal.SIGTERM)
        nodes[2].wait()
        for r in nodes[:2]:
            wait_for(lambda: self.members(r)["r3"]["state"] == "left", "r3 has left")
        self.converge(nodes[0], 2)

    def test_signals_at_its_last_steps_change_nothing(self):
        """Its key file is watched by threads, which take signals as well."""
        for number in (signal.SIGTERM, signal.SIGHUP):
            r = self.node("r1", [self.engine()])
            r.signal(signal.SIGTERM)
            while r.popen.poll() is None:
                r.signal(number)
                time.sleep(0.0005)
            self.assertEqual(r.wait(), 0)

    def test_a_stopped_router_comes_back_by_itself(self):
        nodes = self.cluster(3, [self.engine()])
        nodes[2].signal(signal.SIGSTOP)
        for r in nodes[:2]:
            wait_for(lambda: self.members(r)["r3"]["state"] != "alive", "r3 missed")
        time.sleep(2)
        nodes[2].signal(signal.SIGCONT)
        for r in nodes:
            self.wait_alive(r, ["r1", "r2", "r3"])
        self.converge(nodes[2], 3)

    def test_the_first_may_come_last(self):
        """A seed that is not there is tried for ever."""
        e = self.engine()
        port = closed_port()
        early = self.node("r2", [e], join="%s:%d" % (HOST, port))
        self.assertEqual(self.alive(early), ["r2"])
        late = self.node("r1", [e], listen="%s:%d" % (HOST, port))
        for r in (early, late):
            self.wait_alive(r, ["r1", "r2"])
        self.converge(late, 2)

    def test_a_seed_by_name_and_itself_among_the_seeds(self):
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


class Shared(Clustered):
    def test_a_conversation_over_three_routers_finds_its_cache(self):
        sims = [self.sim(*FAST) for _ in range(3)]
        nodes = self.cluster(3, sims)
        for r in nodes:
            r.wait_up(3)
        talks = [Talk(self, seed) for seed in range(4)]
        for turn in range(6):
            for talk in talks:
                talk.ask(nodes[turn % 3])
            time.sleep(0.1)  # a person reads; news needs some 10 ms
        for talk in talks:
            self.assertEqual(len(set(talk.where)), 1, "it moved: %s" % talk.where)
            for turn in range(1, 6):
                self.assertGreater(talk.cached[turn], talk.prompt[turn - 1] * 0.7)
        self.converge(nodes[1], 3)
        for r in nodes:
            for talk in talks:
                self.assertGreater(talk.believed(r)[talk.where[0]], 1000)
        status, out, err = gvctl("explain", "--all", admin=nodes[0].admin_port,
                                 stdin=json.dumps(talks[0].body()).encode())
        self.assertEqual((status, err), (0, ""))
        line = [l for l in out.splitlines() if l.startswith(talks[0].where[0])][0]
        self.assertEqual(line.count(">"), 3, out)
        got = nodes[2].admin("POST", "/explain?all=1", json.dumps(talks[0].body()).encode()).json
        self.assertEqual({n["choice"] for n in got["nodes"].values()}, {talks[0].where[0]})

    def test_stored_responses_are_found_from_every_router(self):
        sims = [self.sim(*FAST) for _ in range(3)]
        nodes = self.cluster(2, sims, "--policy", "round_robin")
        for r in nodes:
            r.wait_up(3)
        for _ in range(3):
            got = self.client(nodes[0]).post("/v1/responses", {
                "model": "sim", "input": words("q", 50), "max_output_tokens": 5})
            self.assertEqual(got.status, 200, got)
            self.converge(nodes[0], 2)
            other = self.client(nodes[1]).ask("GET", "/v1/responses/" + got.json["id"])
            self.assertEqual((other.status, other.get("x-grapevine-replica")),
                             (200, got.get("x-grapevine-replica")))
        for r in nodes:  # who has it was known: without that, all are asked in turn
            self.assertEqual(r.metric("retries_total"), 0)

    def test_a_joiner_knows_before_it_is_ready(self):
        sims = [self.sim(*FAST) for _ in range(2)]
        nodes = self.cluster(2, sims)
        for r in nodes:
            r.wait_up(2)
        talks = [Talk(self, seed) for seed in range(3)]
        for talk in talks:
            talk.ask(nodes[0])
            talk.ask(nodes[0])
        late = self.node("late", sims, join=nodes[1], ready=False)
        wait_for(lambda: late.events("cluster_ready"), "the snapshot")
        wait_for(lambda: late.admin("GET", "/readyz").status == 200, "late ready")
        for talk in talks:
            self.assertGreater(talk.believed(late)[talk.where[-1]], 1000)
        self.converge(late, 3)

    def test_a_joiner_is_not_ready_before_it_knows(self):
        e = self.engine()
        r = self.node("r1", [e], join="%s:%d" % (HOST, closed_port()), ready=False)
        got = r.admin("GET", "/readyz")
        self.assertEqual((got.status, got.body.split(b":")[0]), (503, b"joining"))
        self.assertEqual(r.get("/health").status, 503)
        wait_for(lambda: r.admin("GET", "/readyz").status == 200, "alone, it is the first")

    def test_a_drained_replica_is_drained_everywhere(self):
        sims = [self.sim(*FAST) for _ in range(2)]
        nodes = self.cluster(3, sims)
        for r in nodes:
            r.wait_up(2)

        def health(r):
            return {x["name"]: x["health"] for x in r.admin("GET", "/replicas").json}
        self.assertEqual(gvctl("drain", sims[0].name, admin=nodes[0].admin_port)[0], 0)
        for r in nodes:
            wait_for(lambda: health(r)[sims[0].name] == "draining", "draining")
        for i in range(6):
            talk = Talk(self, 100 + i)
            talk.ask(nodes[i % 3])
            self.assertEqual(talk.where, [sims[1].name])
        late = self.node("late", sims, join=nodes[1])
        self.assertEqual(health(late)[sims[0].name], "draining")
        self.assertEqual(gvctl("undrain", sims[0].name, admin=late.admin_port)[0], 0)
        for r in nodes:
            wait_for(lambda: health(r)[sims[0].name] == "up", "up again")
        self.converge(nodes[0], 4)

    def test_replicas_come_and_go_at_run_time(self):
        sims = [self.sim(*FAST) for _ in range(2)]
        nodes = self.cluster(3, sims[:1])

        def names(r):
            return sorted(x["name"] for x in r.admin("GET", "/replicas").json)
        both = sorted(s.name for s in sims)
        self.assertEqual(gvctl("add", sims[1].name, admin=nodes[0].admin_port)[0], 0)
        for r in nodes:
            wait_for(lambda: names(r) == both, "the new replica")
            r.wait_up(2)
        talk = Talk(self, 7)
        talk.ask(nodes[1])
        self.assertEqual(gvctl("remove", sims[0].name, admin=nodes[2].admin_port)[0], 0)
        for r in nodes:
            wait_for(lambda: names(r) == [sims[1].name], "one replica")
        for r in nodes:
            talk = Talk(self, 8)
            talk.ask(r)
            self.assertEqual(talk.where, [sims[1].name])
        late = self.node("late", sims[:1], join=nodes[0])
        self.assertEqual(names(late), [sims[1].name])
        self.assertEqual(gvctl("add", sims[0].name, admin=late.admin_port)[0], 0)
        for r in nodes:
            wait_for(lambda: names(r) == both, "it is back")
        self.converge(nodes[1], 4)
        for args, word in ((("remove", "10.9.9.9:1"), "no replica"), (("add", "x y"), "HOST:PORT"),
                           (("add", "a:1", "--engine", "gpt"), "engine")):
            status, _, err = gvctl(*args, admin=nodes[0].admin_port)
            self.assertEqual(status, 1)
            self.assertIn(word, err)

    def test_a_replica_is_named_in_full(self):
        e = self.engine()
        r = self.router([e, self.engine()])
        r.wait_up(2)
        for name, word in (("foo", "the port is missing"), ("http://foo", "the port is missing"),
                           ("https://foo:1", "https is not supported"), ("foo:99999", "1 to 65535"),
                           ("[::1]:0", "1 to 65535"), ("foo:x", "1 to 65535"),
                           ("foo:1/v1", "no path"), ("x y", "HOST:PORT"), ("", "No replica")):
            for command in ("add", "remove", "drain", "undrain"):
                status, out, err = gvctl(command, name, admin=r.admin_port)
                self.assertEqual((status, out), (1, ""), (command, name))
                self.assertIn(word, err)
        status, _, err = gvctl("drain", "foo:1", admin=r.admin_port)
        self.assertIn("gvctl replicas", err)
        got = r.admin("POST", "/drain")
        self.assertEqual((got.status, got.json["error"]["param"]), (400, "replica"))
        self.assertIn("?replica=HOST:PORT", got.json["error"]["message"])
        for command, health in (("drain", "draining"), ("undrain", "up")):
            self.assertEqual(gvctl(command, "http://%s/" % e.name, admin=r.admin_port)[0], 0)
            rows = {x["name"]: x["health"] for x in r.admin("GET", "/replicas").json}
            self.assertEqual(rows[e.name], health)
        self.assertEqual(gvctl("remove", "http://" + e.name, admin=r.admin_port)[0], 0)

    def test_a_router_alone_can_change_its_replicas_too(self):
        sims = [self.sim(*FAST) for _ in range(2)]
        r = self.router([sims[0].url])
        r.wait_up(1)
        self.assertEqual(r.admin("POST", "/replicas?replica=" + sims[1].name).status, 200)
        r.wait_up(2)
        got = r.admin("DELETE", "/replicas?replica=http://" + sims[0].name)
        self.assertEqual(got.status, 200, got)
        talk = Talk(self, 1)
        for _ in range(3):
            talk.ask(r)
        self.assertEqual(set(talk.where), {sims[1].name})
        self.assertEqual(r.admin("PUT", "/replicas").get("allow"), "GET, HEAD, POST, DELETE")

    def test_a_removed_replica_finishes_what_it_has(self):
        sims = [self.sim("--decode-base-ms", "20") for _ in range(2)]
        r = self.router([s.url for s in sims])
        r.wait_up(2)
        c = self.client(r)
        body = {"model": "sim", "max_tokens": 60, "stream": True,
                "messages": [message("user", "go on")]}
        c.send(chat(body))
        head = c.head()
        where = head.get("x-grapevine-replica")
        self.assertEqual(r.admin("DELETE", "/replicas?replica=" + where).status, 200)
        self.assertIn(b"data: [DONE]", c.reader.chunked()[0])
        r.quiet()

    def test_routers_share_what_only_one_is_configured_with(self):
        sims = [self.sim(*FAST) for _ in range(2)]
        first = self.node("r1", [sims[0]])
        second = self.node("r2", [sims[1]], join=first)
        empty = self.node("r3", [], join=first)
        for r in (first, second, empty):
            r.wait_up(2)
        for r, where in ((first, ["settings", "heard"]), (empty, ["heard", "heard"])):
            out = gvctl("replicas", admin=r.admin_port)[1]
            head, *lines = out.splitlines()[:3]
            rows = {line.split()[0]: line.split()[head.split().index("FROM")] for line in lines}
            self.assertEqual([rows[s.name] for s in sims], where)
        # What a router that left has named goes on: it answers. An operator ends it.
        second.stop()
        wait_for(lambda: first.events("member_left"), "that r2 left")
        self.assertEqual(gvctl("remove", sims[1].name, admin=empty.admin_port)[0], 0)
        for r in (first, empty):
            wait_for(lambda: [x["name"] for x in r.admin("GET", "/replicas").json] ==
                     [sims[0].name], "what is left")

    def test_changes_need_the_token(self):
        path = os.path.join(self.folder.name, "token")
        with open(path, "w") as f:
            f.write("sesame\n")
        r = self.router([self.engine()], "--admin-token-file", path)
        for method, target in (("POST", "/replicas?replica=a:1"), ("DELETE", "/replicas?replica=a:1")):
            got = r.admin(method, target)
            self.assertEqual(got.status, 401)
            self.assertIn("--token-file", got.json["error"]["message"])
        got = r.admin("POST", "/replicas?replica=a:1", headers=[("Authorization", "Bearer sesame")])
        self.assertEqual(got.status, 200, got)


if __name__ == "__main__":
    unittest.main()
