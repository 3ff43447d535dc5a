"""gvctl events at a router that collects the events of all routers: one list by time, and the routers missing from
it."""

import json
import re
import signal
import subprocess
import threading
import unittest

from lib import HOST, Case, answer_json, binary, wait_for
from lib_cluster import gvctl


class Events(Case):
    def setUp(self):
        super().setUp()
        self.port = self.engine()

    def ask(self, *command, says=None):
        if says is not None:
            self.port.closes(says)
        return gvctl(*command, admin=self.port.port)

    @staticmethod
    def saw(*events, since=1):
        """A router's events: (change, time) each."""
        return {"since_ms": since, "changed": max([c for c, _ in events], default=0), "events": [
            {"id": c, "change": c, "last_ms": ms, "count": 1, "text": "t%d" % c} for c, ms in events]}

    def test_events_of_all_routers_by_time(self):
        nodes = {"r1": self.saw((1, 5000), (2, 7000)), "r2": self.saw((8, 6000), (9, 5000)),
                 "r3": {"error": "the time limit has passed"}, "r4": {"error": "not supported"}}
        gone = {"r%d" % n: "dead" for n in range(5, 15)}
        says = answer_json({"self": "r1", "nodes": nodes, "not_asked": {**gone, "r99": "left"}})
        status, out, err = self.ask("events", "-o", "json", says=says)
        self.assertEqual(status, 0)
        told = json.loads(out)
        self.assertEqual([(e["router"], e["id"]) for e in told["events"]], [("r1", 1), ("r2", 9), ("r2", 8), ("r1", 2)])
        self.assertEqual(told["silent"], {"r3": "the time limit has passed", "r4": "not supported"})
        self.assertIn("gvctl: router r3 does not answer: the time limit has passed; its events are missing\n", err)
        self.assertIn("gvctl: router r4 does not answer: its version is too old for", err)
        self.assertRegex(err, r"gvctl: not asked: r5 \(dead\),.* r12 \(dead\) and 2 more\n")
        self.assertNotIn("r99", err)
        status, out, err = self.ask("events", "--last", "1")
        self.assertRegex(out, r"^TIME .*\n\S+ \S+  r1 +- +t2\n$")
        status, out, err = self.ask("events", "--router", "r3")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("r3 does not answer", err)

    def test_an_event_that_several_routers_saw_is_one_line(self):
        """Before, a death was three lines with three routers."""
        def dead(number, ms, about="a:1", **more):
            return dict({"id": number, "change": number, "last_ms": ms, "count": 1, "about": about,
                         "text": "Replica %s is down." % about}, **more)
        says = {"r%d" % n: {"since_ms": 1, "changed": 9, "events": [dead(1, 1000000 + n), dead(2, 1002000, "b:2", count=n)]}
                for n in range(1, 4)}
        says["r1"]["events"].append(dead(3, 1004000))
        says["r2"]["events"].append(dead(3, 1009001))
        answer = answer_json({"self": "r1", "nodes": says, "not_asked": {}})
        status, out, err = self.ask("events", says=answer)
        self.assertEqual((status, err), (0, ""))
        rows = [re.search("^\\S+ \\S+  (.*?)  +([ab]:[12])", line).groups() for line in out.splitlines()[1:]]
        self.assertEqual(rows, [("r1 r2 r3", "a:1"), ("r1", "b:2"), ("r2", "b:2"), ("r3", "b:2"), ("r1", "a:1"), ("r2", "a:1")])
        self.assertEqual(self.ask("events", "--last", "6", says=answer)[1], out, "so many lines")
        self.assertEqual(len(json.loads(self.ask("events", "-o", "json", says=answer)[1])["events"]), 8)
        many = {"r%d" % n: {"since_ms": 1, "changed": 1, "events": [dead(1, 1000000)]} for n in range(1, 8)}
        out = self.ask("events", says=answer_json({"self": "r1", "nodes": many, "not_asked": {}}))[1]
        self.assertIn("  r1 r2 r3 r4 +3  a:1 ", out)

    def test_an_older_router_shows_only_its_own_events(self):
        says = answer_json({"router": "r1", "since_ms": 1, "changed": 2, "events": [{"text": "old"}]})
        status, out, err = self.ask("events", says=says)
        self.assertEqual((status, err), (0, "gvctl: router r1 has an older version and reports only its own events\n"))
        self.assertRegex(out, r"\n-  +r1 +- +old\n$")
        status, out, err = self.ask("events", "--router", "r2")
        self.assertEqual((status, out), (1, ""))
        self.assertIn('is not router "r2"', err)

    def test_all_routers_are_followed(self):
        """A router that restarts counts as new; a router that was silent is asked for its whole gap; windows overlap."""
        silent = {"error": "the time limit has passed"}
        told = [
            {"r1": self.saw((1, 10)), "r2": self.saw((1, 11))}, {"r1": self.saw((1, 10), (2, 12)), "r2": silent},
            {"r1": self.saw(), "r2": self.saw((3, 15))}, {"r1": self.saw((2, 12)), "r2": self.saw((2, 13), (3, 15))},
            {"r1": self.saw((1, 20), since=2), "r2": self.saw()}, {"r1": self.saw((1, 20), since=2), "r2": self.saw()}]
        asked = []

        def handler(request):
            request.read_body()
            nodes = told[min(max(len(asked) - 1, 0), len(told) - 1)]
            asked.append(int(re.search(r"all=1&n=\d+&within=(\d+)$", request.target)[1]))
            request.send(answer_json({"self": "r1", "nodes": nodes, "not_asked": {}}))
            request.close()
        self.port.handler = handler
        p = subprocess.Popen([binary("gvctl"), "--admin", self.port.url, "events", "--follow", "-o", "json"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for(lambda: len(asked) > len(told) + 1, "it asks on")
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=60)
        seen = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([(e["router"], e["id"]) for e in seen],
                         [("r1", 1), ("r2", 1), ("r1", 2), ("r2", 2), ("r2", 3), ("r1", 1)])
        self.assertEqual(err.decode().count("router r2 does not answer"), 1)
        self.assertEqual([asked[n] for n in (0, 6)], [0, 0])  # the first, and after the restart
        self.assertGreater(asked[4], asked[3] + 900, "the gap of the one that was silent")
        self.assertGreaterEqual(asked[1], 2000, "the last ones were shown")
        for n in (2, 3):
            self.assertGreater(asked[n], 2900)

    def test_last_with_follow_shows_the_last_events_of_all_first(self):
        told = [{"r1": self.saw((1, 10), (2, 30)), "r2": self.saw((5, 20))}, {"r1": self.saw((2, 30), (3, 40)), "r2": self.saw()}]
        asked = []

        def handler(request):
            request.read_body()
            asked.append(request.target)
            request.send(answer_json({"self": "r1", "nodes": told[min(len(asked), 3) // 3], "not_asked": {}}))
            request.close()
        self.port.handler = handler
        p = Follower(self, "--admin", self.port.url, "events", "--follow", "--last", "2", "-o", "json")
        wait_for(lambda: len(p.lines) >= 3, "one that comes")
        self.assertEqual([json.loads(line)["text"] for line in p.lines], ["t5", "t2", "t3"])
        self.assertIn("?all=1&n=2&within=0", asked[0])


class Follower:
    """A gvctl that follows, and its lines."""

    def __init__(self, case, *args):
        self.lines = []
        self.p = subprocess.Popen([binary("gvctl"), *args], stdout=subprocess.PIPE)
        self.thread = threading.Thread(target=lambda: self.lines.extend(self.p.stdout), daemon=True)
        self.thread.start()
        case.addCleanup(self.ends)

    def ends(self):
        self.p.kill()
        self.thread.join()
        self.p.stdout.close()
        self.p.wait()


class Routers(Case):
    def test_last_with_follow_shows_the_last_events_first(self):
        """Before, --last was ignored with --follow, and --local --follow ended after the table's head, because it
        requested more events than there can be."""
        e = self.engine()
        r = self.router([e])
        c = self.client(r)
        admin = "http://%s:%d" % (HOST, r.admin_port)

        def happen():
            c.post("/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "hi"}]})
            for level in ("debug", "info"):
                self.assertEqual(r.admin("POST", "/log-level?level=" + level).status, 200)
        for _ in range(3):
            happen()
        for command in (("decisions",), ("events",), ("events", "--local")):
            def kept():
                told = json.loads(gvctl("-o", "json", *command, admin=r.admin_port)[1])[command[0]]
                return told if len(told) >= 3 and all(t.get("outcome", 1) for t in told) else None
            before = wait_for(kept, "they have ended")
            p = Follower(self, "--admin", admin, *command, "--follow", "--last", "2", "-o", "json")
            wait_for(lambda: len(p.lines) >= 2, "the last ones")
            after = kept()  # on a busy machine one more may have come by itself
            last = [json.loads(line)["id"] for line in p.lines[:2]]
            self.assertIn(last, [[a["id"], b["id"]] for a, b in zip(after, after[1:]) if b["id"] >= before[-1]["id"]])
            happen()
            wait_for(lambda: len(p.lines) >= 3, "what comes")
            self.assertGreater(json.loads(p.lines[2])["change"], before[-1]["change"])
            p.ends()


if __name__ == "__main__":
    unittest.main()
