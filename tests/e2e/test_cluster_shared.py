"""State that routers share: prefixes, stored responses, and replicas that are drained, added and removed at run
time."""

import json
import os
import unittest

from lib import HOST, closed_port, wait_for
from lib_cluster import Clustered, Talk, gvctl
from test_engines import FAST, UNHURRIED, chat, message, words


class Shared(Clustered):
    def test_a_conversation_over_three_routers_finds_its_cache(self):
        sims = [self.sim(*UNHURRIED) for _ in range(3)]
        nodes = self.cluster(3, sims)
        for r in nodes:
            r.wait_up(3)
        talks = [Talk(self, seed) for seed in range(4)]
        for turn in range(6):
            for talk in talks:
                talk.ask(nodes[turn % 3])
            for talk in talks:  # a person reads for longer
                wait_for(lambda: talk.believed(nodes[(turn + 1) % 3])[talk.where[-1]] > talk.prompt[-1] * 0.7,
                         "the next router has heard of it")
        # Not all: an engine that a busy machine holds up is slow, so a turn may move. By chance a third would find it.
        found = [talk.cached[turn] > talk.prompt[turn - 1] * 0.7 for talk in talks for turn in range(1, 6)]
        self.assertGreaterEqual(sum(found), 15, [talk.where for talk in talks])
        self.converge(nodes[1], 3)
        for r in nodes:
            for talk in talks:
                self.assertGreater(talk.believed(r)[talk.where[-1]], 1000)
        stayed = next(talk for talk in talks if len(set(talk.where)) == 1)
        status, out, err = gvctl("explain", "--all", admin=nodes[0].admin_port,
                                 stdin=json.dumps(stayed.body()).encode())
        self.assertEqual((status, err), (0, ""))
        line = [l for l in out.splitlines() if l.startswith(stayed.where[0])][0]
        self.assertEqual(line.count(">"), 3, out)
        got = nodes[2].admin("POST", "/explain?all=1", json.dumps(stayed.body()).encode()).json
        self.assertEqual({n["choice"] for n in got["nodes"].values()}, {stayed.where[0]})

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
        for r in nodes:  # the holder was known: otherwise all are asked in turn
            self.assertEqual(r.metric("retries_total"), 0)

    def test_a_joining_router_has_the_state_before_it_is_ready(self):
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

    def test_a_joining_router_without_the_state_is_not_ready(self):
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

    def test_replicas_must_be_named_by_host_and_port(self):
        e = self.engine()
        r = self.router([e, self.engine()])
        r.wait_up(2)
        for name, word in (("foo", "the port is missing"), ("http://foo", "the port is missing"),
                           ("https://foo", "the port is missing"), ("foo:99999", "1 to 65535"),
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

    def test_a_single_router_can_change_its_replicas(self):
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

    def test_a_removed_replica_finishes_its_requests(self):
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

    def test_routers_share_replicas_that_only_one_has_configured(self):
        sims = [self.sim(*FAST) for _ in range(2)]
        first = self.node("r1", [sims[0]])
        second = self.node("r2", [sims[1]], join=first)
        empty = self.node("r3", [], join=first)
        for r in (first, second, empty):
            r.wait_up(2)
        for r, where in ((first, ["settings", "heard"]), (empty, ["heard", "heard"])):
            out = gvctl("replicas", "-o", "wide", admin=r.admin_port)[1]
            head, *lines = out.splitlines()[:3]
            rows = {line.split()[0]: line.split()[head.split().index("FROM")] for line in lines}
            self.assertEqual([rows[s.name] for s in sims], where)
        # A replica listed by a router that left stays, because it answers. An operator removes it.
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
