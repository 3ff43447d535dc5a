"""Recent decisions and events: /decisions and /events of the admin port."""

import json
import os
import re
import signal
import subprocess
import tempfile

from lib import HOST, Case, answer, binary, wait_for
from lib_cluster import Clustered, gvctl
from test_engines import CHAT, message

SECRET = "the-prompt-nobody-may-read"


def chat(seed=0):
    return {"model": "m", "messages": [message("user", "%d %s" % (seed, SECRET) + " word" * 200)]}


def decisions(r, query=""):
    got = r.admin("GET", "/decisions" + query)
    assert got.status == 200, got
    assert SECRET not in got.body.decode()
    return got.json


def texts(r):
    got = r.admin("GET", "/events?n=256")
    assert got.status == 200, got
    assert SECRET not in got.body.decode()
    return [e["text"] for e in got.json["events"]]


def wait_text(case, r, *words):
    def there():
        return [t for t in texts(r) if all(w in t for w in words)]
    return wait_for(there, "an event with %s (there are %s)" % (words, texts(r)), step=0.05)[-1]


class Decisions(Case):
    def test_a_decision_says_why_a_replica_was_chosen(self):
        sims = [self.sim() for _ in range(2)]
        r = self.router(sims)
        c = self.client(r)
        body = {"model": "sim", "messages": [message("user", SECRET + " word" * 800)], "max_tokens": 4}
        where = []
        for i in range(2):
            got = c.post(CHAT, body, [("x-request-id", "req-%d" % i)])
            self.assertEqual(got.status, 200, got)
            where.append(got.get("x-grapevine-replica"))
        told = wait_for(lambda: [d for d in decisions(r)["decisions"] if d["outcome"]][1:] and decisions(r),
                        "both have ended")
        first, second = told["decisions"]
        self.assertEqual([first["request"], second["request"]], ["req-0", "req-1"])
        self.assertEqual([first["choice"], second["choice"]], where)
        self.assertEqual(second["why"], "cached")
        self.assertEqual(second["policy"], "cache_aware")
        self.assertGreater(second["cached_tokens"], 500)
        self.assertEqual({x["replica"] for x in second["replicas"]}, {s.name for s in sims})
        cheapest = min(second["replicas"], key=lambda x: x["cost_s"])
        self.assertEqual(cheapest["replica"], second["choice"])
        for row in second["replicas"]:
            terms = (row["queue_s"] + row["uncached_s"] + row["adapter_s"]
                     + second["displaced_weight"] * row["displaced_s"])
            self.assertLessEqual(terms, row["cost_s"] + 1e-4)
        end = second["outcome"]
        self.assertEqual((end["end"], end["status"]), ("ok", 200))
        self.assertGreater(end["cached_tokens"], 500)
        self.assertGreaterEqual(end["prompt_tokens"], end["cached_tokens"])
        self.assertRegex(second["why_text"], r"^holds \d+ of \d+ prompt tokens; no other holds any$")

        def chosen(query):
            return [d["request"] for d in decisions(r, query)["decisions"]]
        self.assertEqual(chosen("?reason=cached&model=sim&failed=0"), ["req-1"])
        self.assertEqual(chosen("?replica=%s&slow_ms=3600000" % where[0]), [])
        self.assertEqual(chosen("?failed=1"), [])
        for wrong in ("reason=hot", "reason=", "failed=2", "slow_ms=x", "model=%zz"):
            self.assertEqual(r.admin("GET", "/decisions?" + wrong).status, 400, wrong)
        status, out, err = gvctl("decisions", "--reason", "cached", "--model", "sim", admin=r.admin_port)
        self.assertEqual((status, err, len(out.splitlines())), (0, "", 2))
        self.assertIn("200 ok", out)
        self.assertIn(second["why_text"], out)

    def test_every_reason_is_offered(self):
        """`plain` was not: of the help, of the page, and of the answer to a wrong word."""
        with open("node/route/reason.c", encoding="utf-8") as f:
            reasons = set(re.findall(r'NODE_REASON_\w+\] =\s*\{"(\w+)"', f.read()))
        with open("node/admin/page/index.html", encoding="utf-8") as f:
            offered = re.search(r'<select id="d-reason".*', f.read()).group()
        told = self.router([self.engine()]).admin("GET", "/decisions?reason=hot").json["error"]["message"]
        self.assertIn("plain", reasons)
        self.assertEqual(set(re.findall(r'value="(\w+)"', offered)), reasons)
        for said in (told.split("reason=")[1], re.search(r"--reason WHY((.|\n)*)", gvctl("help", "decisions")[1]).group(1)):
            self.assertEqual(reasons - set(re.findall(r"\w+", said)), set(), said)

    def test_a_clients_429_of_full_engines_is_a_failure(self):
        """It was listed as the client's own error, so --failed showed nothing."""
        engine = self.engine().replies(answer(429, b"full"))
        r = self.router([engine])
        self.assertEqual(self.client(r).post(CHAT, chat(1)).status, 429)
        ends = [d["outcome"] for d in decisions(r, "?failed=1")["decisions"]]
        self.assertEqual([(e["end"], e["result"], e["status"]) for e in ends], [("engine_busy", "client_error", 429)])

    def test_a_retry_is_two_decisions_of_one_request(self):
        bad, good = self.engine(), self.engine()
        r = self.router([bad, good])
        bad.replies(answer(503, b"full"))
        c = self.client(r)
        retried = None
        for i in range(20):
            self.assertEqual(c.post(CHAT, chat(i), [("x-request-id", "id-%d" % i)]).status, 200)
            told = decisions(r)["decisions"]
            retried = [d for d in told if d["request"] == told[-1]["request"]]
            if len(retried) == 2:
                break
        first, second = retried
        self.assertEqual((first["choice"], first["attempt"]), (bad.name, 1))
        self.assertEqual((second["choice"], second["attempt"]), (good.name, 2))
        self.assertEqual(first["outcome"]["end"], "engine_busy")
        self.assertEqual(first["outcome"]["status"], 503)
        self.assertEqual([x["replica"] for x in second["replicas"]], [good.name])
        wait_text(self, r, bad.name, "went to another")

    def test_a_follower_misses_no_decision(self):
        r = self.router([self.engine()])
        c = self.client(r)
        c.post(CHAT, chat())
        start = decisions(r, "?changed=0")
        self.assertEqual([d["id"] for d in start["decisions"]], [1])
        for _ in range(3):
            c.post(CHAT, chat())
        self.assertEqual([d["id"] for d in decisions(r, "?after=1&n=2")["decisions"]], [2, 3])
        more = decisions(r, "?ended=1&changed=%d" % start["changed"])
        self.assertEqual([d["id"] for d in more["decisions"]], [2, 3, 4])
        self.assertEqual(decisions(r, "?changed=%d" % more["changed"])["decisions"], [])
        self.assertEqual([d["id"] for d in decisions(r, "?id=3")["decisions"]], [3])
        self.assertEqual(more["made"], 4)

    def test_invalid_queries_are_refused(self):
        r = self.router([self.engine()])
        for path in ("/decisions?n=0", "/decisions?n=513", "/decisions?after=x", "/events?n=257",
                     "/decisions?after=-1", "/decisions?id=1&after=2", "/events?ended=2"):
            got = r.admin("GET", path)
            self.assertEqual(got.status, 400, path)
            self.assertIn("whole numbers", got.json["error"]["message"])
        self.assertEqual(r.admin("POST", "/decisions", b"").status, 405)

    def test_gvctl_shows_decisions_and_events(self):
        r = self.router([self.engine()])
        self.client(r).post(CHAT, chat())
        for command in ("decisions", "events"):
            status, out, err = gvctl("--json", command, admin=r.admin_port)
            self.assertEqual((status, err), (0, ""))
            self.assertEqual(json.loads(out)[command][0]["id"], 1)


class Events(Case):
    def test_events_of_replicas_that_come_drain_and_go(self):
        a, b = self.engine(), self.engine()
        r = self.router([a, b])
        wait_text(self, r, a.name, "is up")
        r.admin("POST", "/drain?replica=" + a.name)
        wait_text(self, r, a.name, "draining: by an operator")
        r.admin("POST", "/undrain?replica=" + a.name)
        wait_text(self, r, a.name, "well again")
        b.stop()
        wait_text(self, r, b.name, "is down")
        r.admin("DELETE", "/replicas?replica=" + b.name)
        wait_text(self, r, b.name, " removed.")
        self.assertEqual(r.admin("POST", "/log-level?level=warn").status, 200)
        wait_text(self, r, "log", "warn")
        newest = r.admin("GET", "/events").json["newest"]
        r.admin("POST", "/drain?replica=" + a.name)  # the log is silent about it
        got = wait_for(lambda: r.admin("GET", "/events?after=%d" % newest).json["events"], "it drains")
        self.assertEqual([(e["kind"], e["about"]) for e in got], [("drain", a.name)])


class Cluster(Clustered):
    def test_a_killed_router_is_an_event(self):
        e = self.engine()
        nodes = self.cluster(2, [e])
        wait_text(self, nodes[0], "r2", "joined")
        nodes[1].signal(signal.SIGKILL)
        nodes[1].stopped = True
        nodes[1].wait()
        self.assertIn("dead", wait_text(self, nodes[0], "r2", "dead"))

    def level(self, r, level):
        """Causes an event that this router alone notices."""
        self.assertEqual(r.admin("POST", "/log-level?level=" + level).status, 200)

    def test_gvctl_merges_the_events_of_all_routers(self):
        nodes = self.cluster(3, [self.engine()])
        self.level(nodes[1], "debug")
        self.level(nodes[2], "debug")
        wait_text(self, nodes[2], "r2", "joined")  # and so on: none of it is on its way
        for r in nodes:
            wait_text(self, r, "is up")

        def shown(*args):
            status, out, err = gvctl("events", "--json", "--last", "256", *args, admin=nodes[0].admin_port)
            self.assertEqual((status, err), (0, ""))
            return json.loads(out)
        told = shown()["events"]
        self.assertEqual({e["router"] for e in told}, {"r1", "r2", "r3"})
        self.assertEqual([e["last_ms"] for e in told], sorted(e["last_ms"] for e in told))
        self.assertEqual({e["router"] for e in told if "debug" in e["text"]}, {"r2", "r3"})
        for number, r in enumerate(nodes):
            own = shown("--router", "r%d" % (number + 1))["events"]
            self.assertEqual({e["router"] for e in own}, {"r%d" % (number + 1)})
            self.assertEqual([e["text"] for e in own], texts(r))
        self.assertEqual([e["text"] for e in shown("--local")["events"]], texts(nodes[0]))
        table = gvctl("events", "--last", "2", admin=nodes[0].admin_port)[1].splitlines()
        self.assertEqual(len(table), 3)
        self.assertRegex(table[1], r"^\d{4}-\S+ \S+  r\d( r\d)*  ")
        status, out, err = gvctl("events", "--router", "r9", admin=nodes[0].admin_port)
        self.assertEqual((status, out), (1, ""))
        self.assertIn('no router "r9" is alive', err)
        self.assertEqual(gvctl("events", "--router", "r2", "--local", admin=nodes[0].admin_port)[0], 2)

    def test_gvctl_follows_all_routers_and_names_silent_ones(self):
        nodes = self.cluster(3, [self.engine()])
        with tempfile.TemporaryDirectory() as folder:
            out, err = (open(os.path.join(folder, name), "w+") for name in ("out", "err"))
            self.addCleanup(out.close)
            self.addCleanup(err.close)
            p = subprocess.Popen([binary("gvctl"), "--admin", "http://%s:%d" % (HOST, nodes[0].admin_port),
                                  "events", "--follow", "-o", "json"], stdout=out, stderr=err)
            self.addCleanup(p.wait)
            self.addCleanup(p.kill)

            def lines():
                with open(out.name) as f:
                    return [json.loads(line) for line in f.read().splitlines(True) if line.endswith("\n")]

            def wait_line(router, *words):
                return wait_for(lambda: [e for e in lines() if e["router"] == router
                                         and all(w in e["text"] for w in words)],
                                "%s saw %s" % (router, words), step=0.05)
            wait_line("r3", "r2", "joined")
            self.level(nodes[2], "debug")
            wait_line("r3", "debug")
            nodes[1].signal(signal.SIGSTOP)
            wait_for(lambda: "gvctl: router r2 does not answer: " in open(err.name).read(), "it is named")
            self.level(nodes[2], "warn")
            wait_line("r3", "warn")  # responders are still shown
            wait_line("r1", "r2", "dead")
            nodes[1].signal(signal.SIGCONT)
            self.level(nodes[1], "error")
            wait_line("r2", "error")
            p.send_signal(signal.SIGINT)
            p.wait()
            seen = [(e["router"], e["id"], e["change"]) for e in lines()]
            self.assertEqual(len(seen), len(set(seen)), "none is shown twice")
