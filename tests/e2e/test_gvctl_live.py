"""gvctl at routers that run: status, top in a terminal, a drain that waits, and ports that are no admin ports."""

import fcntl
import http.server
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import unittest

from lib import HOST, LIMIT, SSE_HEAD, Case, binary, chunk, wait_for
from lib_cluster import Clustered, Talk, gvctl
from test_engines import CHAT, FAST

EVENT = b'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, case, args, rows=24, columns=80, **environment):
        self.ours, theirs = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(theirs)
        self.theirs = theirs
        self.out = ""
        self.p = subprocess.Popen([binary("gvctl"), *args], stdin=theirs, stdout=theirs, stderr=theirs,
                                  start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
                                  env={"PATH": os.environ["PATH"], "TERM": "xterm", **environment})
        case.addCleanup(self.close)

    def resize(self, rows, columns):
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self):
        while select.select([self.ours], [], [], 0.02)[0]:
            try:
                self.out += os.read(self.ours, 65536).decode()
            except OSError:
                return self.out
        return self.out

    def frames(self):
        """The text of each whole frame, without what moves the cursor or sets colours."""
        texts = [re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", frame).replace("\r", "")
                 for frame in self.read().split("\x1b[H")[1:]]
        return [t for t in texts if t.endswith("q quits")]  # the last line

    def keys(self, text):
        os.write(self.ours, text.encode())

    def ends(self):
        wait_for(lambda: (self.read(), self.p.poll() is not None)[1], "its end")
        return self.p.returncode

    def close(self):
        if self.p.poll() is None:
            self.p.kill()
        self.p.wait()
        os.close(self.ours)
        os.close(self.theirs)


class Through(http.server.BaseHTTPRequestHandler):
    """An admin port that forwards GET to that of `router`, and adds `more` to its count of requests."""
    router, more = None, 0

    def do_GET(self):
        got = self.router.admin("GET", self.path)
        told, body = got.json, got.body
        if "total" in told:
            told["total"]["requests"] += self.more
            body = json.dumps(told).encode()
        self.send_response(got.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Live(Clustered):
    def test_status_of_a_cluster(self):
        sims = [self.sim(*FAST) for _ in range(2)]
        nodes = self.cluster(3, sims)
        talk = Talk(self, 1)
        for turn in range(6):
            talk.ask(nodes[turn % 3])
        self.assertEqual(gvctl("drain", sims[1].name, admin=nodes[1].admin_port)[0], 0)
        self.converge(nodes[0], 3)
        wait_for(lambda: "1 draining" in gvctl("status", admin=nodes[0].admin_port)[1], "it drains at all")
        wait_for(lambda: "all hold" in gvctl("status", admin=nodes[0].admin_port)[1], "they agree")
        self.converge(nodes[0], 3)
        status, out, err = gvctl("status", admin=nodes[0].admin_port)
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"^problems +none\nrouter +r1: ready\nrouters +3: 3 alive; (?:all hold the same state|their states differ \(gvctl convergence\))\n"
                              r"version +grapevine \S+, policy cache_aware\nreplicas +2: 1 up, 1 draining: %s \(by an operator\)\n"
                              r"requests +0 in flight, 0 waiting\nlast minute +6 requests, 0 failed\n"
                              r"from cache +\d+\.\d %% of prompt tokens since the start\n$" % re.escape(sims[1].name))
        for form in ("json", "yaml"):
            status, out, err = gvctl("status", "-o", form, admin=nodes[0].admin_port)
            self.assertEqual((status, err), (0, ""))
        def status_json():  # newly learned values may be on their way
            told = json.loads(gvctl("status", "-o", "json", admin=nodes[0].admin_port)[1])
            return told if told["state"] == "equal" else None
        told = wait_for(status_json, "equal")
        self.assertEqual((told["routers"], told["replicas"], told["state"], told["last_minute"]["requests"], told["routers_counted"]),
                         ({"alive": 3}, {"up": 1, "draining": 1}, "equal", 6, 3))
        cached, prompt = sum(talk.cached), sum(talk.prompt)
        self.assertAlmostEqual(told["share_from_cache"], cached / prompt, 5)
        nodes[2].signal(signal.SIGKILL)
        nodes[2].stopped = True
        nodes[2].wait()
        wait_for(lambda: "2 alive, 1 dead" in gvctl("status", admin=nodes[0].admin_port)[1], "r3 is dead")
        self.assertIn("(Counts are from 2 of 3 routers: no other router is left.)", gvctl("status", admin=nodes[0].admin_port)[1])
        told = json.loads(gvctl("status", "-o", "json", admin=nodes[0].admin_port)[1])
        # Each has its own counters: there is no total that falls when one is gone.
        self.assertEqual({name: c["requests"] for name, c in told["since_start"].items()}, {"r1": 2, "r2": 2})
        self.assertNotIn("requests", told)

    def test_a_drain_waits_for_requests_of_other_routers(self):
        """One stream through the called router and one through another: the drain waits for both."""
        slow, other = self.engine(), self.engine()
        ended = []

        def stream(asked):
            number = slow.requests.index(asked)
            asked.read_body()
            asked.send(SSE_HEAD + chunk(EVENT))
            wait_for(lambda: len(ended) > number, "that it may end", 4 * LIMIT)
            asked.send(chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        slow.handler = stream
        nodes = self.cluster(2, [slow])
        self.assertEqual(gvctl("add", other.name, admin=nodes[0].admin_port)[0], 0)
        body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
        self.assertEqual(gvctl("drain", other.name, admin=nodes[0].admin_port)[0], 0)
        wait_for(lambda: {x["name"]: x["health"] for x in nodes[1].admin("GET", "/replicas").json}.get(other.name) ==
                 "draining", "it drains there")
        clients = [self.client(r) for r in nodes]
        for n, c in enumerate(clients):
            c.send("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" %
                   (CHAT, len(json.dumps(body))) + json.dumps(body))
            slow.wait_request(n + 1)
        wait_for(lambda: [(x["load"]["requests"], x["load"]["requests_of_others"])
                          for x in nodes[0].admin("GET", "/replicas").json if x["name"] == slow.name] == [(1, 1)],
                 "both are known")
        self.assertEqual(gvctl("undrain", other.name, admin=nodes[0].admin_port)[0], 0)
        admin = "http://%s:%d" % (HOST, nodes[0].admin_port)
        shown = Terminal(self, ["--admin", admin, "drain", slow.name, "--wait"])
        wait_for(lambda: "%s: 2 in flight, 1 of them from other routers" % slow.name in shown.read(), "the progress")
        status, out, err = gvctl("drain", slow.name, "--wait", "--timeout", "1", admin=nodes[0].admin_port)
        self.assertEqual(status, 1)
        self.assertIn("gave up after 1 s: 2 in flight", err)
        self.assertIsNone(shown.p.poll())
        status, out, err = gvctl("drain", slow.name, admin=nodes[0].admin_port)
        self.assertIn("2 requests are still in flight there (1 from other routers)", out)
        ended.append(True)  # the called router's; the other's goes on
        wait_for(lambda: shown.read().count("%s: 1 in flight, 1 of them from other routers" % slow.name) >= 8, "looks")
        self.assertIsNone(shown.p.poll())
        ended.append(True)
        self.assertEqual(shown.ends(), 0)
        self.assertIn("%s drains: no router sends it new requests; nothing is in flight there" % slow.name, shown.read())
        for c in clients:
            self.assertEqual(c.read().status, 200)
        status, out, err = gvctl("remove", other.name, admin=nodes[0].admin_port)
        self.assertIn("%s is removed for all routers; nothing is in flight there" % other.name, out)
        self.assertIn("warning: that was the last replica that was up", err)

    def test_top_in_a_terminal(self):
        sim = self.sim(*FAST)
        nodes = self.cluster(2, [sim])
        talk = Talk(self, 1)
        for turn in range(2):
            talk.ask(nodes[turn])
        admin = "http://%s:%d" % (HOST, nodes[0].admin_port)
        t = Terminal(self, ["--admin", admin, "top"], rows=16, columns=80)
        wait_for(lambda: len(t.frames()) >= 2, "a second frame")
        self.assertIn("\x1b[32m", t.out)
        first = t.frames()[0].split("\n")
        self.assertEqual(len(first), 16)
        self.assertLessEqual(max(map(len, first)), 80)
        self.assertRegex(first[0], r"^gvctl top  http\S+  \d\d:\d\d:\d\d  ready")
        self.assertRegex("\n".join(first), r"\n\* r1 +alive +- +- +- +0 +0 +\d.*\n  r2 +alive +\d\.\d +- +- +0 +0 ")
        self.assertEqual(first[-1], "q quits")
        talk.ask(nodes[1])  # at the other router: it is seen in the rates
        wait_for(lambda: any(re.search(r"\nrequests (0\.[1-9]|[1-9])\S*/s", f) for f in t.frames()), "its rate")
        self.assertRegex("\n".join(t.frames()), r"\n  r2 +alive +\d\.\d +(0\.[1-9]|[1-9]\.\d) ")
        wait_for(lambda: any(re.search(r"\n%s +up +- +\d+ +\S+ +(0\.[1-9]|[1-9])" % re.escape(sim.name), f) for f in t.frames()),
                 "the rate of the replica, which was of the router alone that is asked")
        n = len(t.frames())
        t.resize(6, 30)
        wait_for(lambda: len(t.frames()) > n and all(len(line) <= 30 for line in t.frames()[-1].split("\n")),
                 "a smaller frame")
        self.assertEqual(len(t.frames()[-1].split("\n")), 6)
        nodes[0].signal(signal.SIGKILL)
        nodes[0].stopped = True
        nodes[0].wait()
        t.resize(16, 80)
        wait_for(lambda: "cannot be reached; retrying" in t.frames()[-1], "that it is gone")
        t.keys("xq")
        self.assertEqual(t.ends(), 0)
        self.assertTrue(t.read().endswith("\x1b[?25h\x1b[?1049l"), "the screen is as before")
        self.assertEqual(termios.tcgetattr(t.theirs), t.before)

    def test_top_shows_no_jump_when_a_router_restarts(self):
        """Before, all that the other routers had ever counted was shown as the rate of one second."""
        sim = self.sim(*FAST)
        handler = type("Of2", (Through,), {"more": 1000000})
        door = http.server.ThreadingHTTPServer((HOST, 0), handler)
        threading.Thread(target=door.serve_forever, daemon=True).start()
        self.addCleanup(lambda: (door.shutdown(), door.server_close()))
        one = self.node("r1", [sim])
        handler.router = self.node("r2", [sim], "--admin-advertise", "%s:%d" % (HOST, door.server_port), join=one)
        self.wait_alive(one, ["r1", "r2"])
        talk = Talk(self, 1)
        for _ in range(5):
            talk.ask(one)
        t = Terminal(self, ["--admin", "http://%s:%d" % (HOST, one.admin_port), "top"], rows=16, columns=80)

        def rates():
            return [float(r) for f in t.frames() for r in re.findall(r"\nrequests ([\d.]+)\S*/s", f)]
        wait_for(lambda: rates()[-2:] == [0, 0], "nobody asks")
        handler.more = 0
        n = len(t.frames())
        wait_for(lambda: len(t.frames()) > n + 2, "more frames")
        self.assertEqual(max(rates()[-3:]), 0)

    def test_top_ends_by_signals_and_does_without_colour(self):
        r = self.router([self.engine()])
        admin = "http://%s:%d" % (HOST, r.admin_port)
        for how in (lambda t: t.keys("\x03"), lambda t: t.p.send_signal(signal.SIGTERM)):
            t = Terminal(self, ["--admin", admin, "top"], NO_COLOR="1")
            wait_for(lambda: t.frames(), "a frame")
            self.assertNotIn("\x1b[32m", t.out)
            self.assertIn("alone", t.frames()[0])
            how(t)
            self.assertEqual(t.ends(), 0)
            self.assertEqual(termios.tcgetattr(t.theirs), t.before)

    def test_top_once(self):
        r = self.router([self.engine()])
        for args in (("top",), ("top", "--once", "-o", "wide")):
            status, out, err = gvctl(*args, admin=r.admin_port)
            self.assertEqual((status, err), (0, ""))
            self.assertNotIn("\x1b", out)
            self.assertRegex(out, r"(?m)^REPLICA +HEALTH +WHY +IN FLIGHT ")
            self.assertEqual("PREFILL/s" in out, "wide" in args)


class Ports(Case):
    def test_status_of_a_single_router_that_is_not_ready(self):
        e = self.engine()
        r = self.router([e])
        status, out, err = gvctl("status", admin=r.admin_port)
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"^problems +none\nrouter +ready\ncluster +none: this router runs alone\nreplicas +1: 1 up\n")
        self.assertIn("from cache   not known: no answer has reported it\n", out)
        self.assertEqual(json.loads(gvctl("status", "--json", admin=r.admin_port)[1])["share_from_cache"], None)
        self.assertEqual(gvctl("drain", e.name, admin=r.admin_port)[0], 0)
        wait_for(lambda: gvctl("ready", admin=r.admin_port)[0] == 1, "it says so")
        status, out, err = gvctl("status", admin=r.admin_port)
        self.assertEqual((status, err), (1, ""))
        self.assertRegex(out, r"^red +no replica can take requests, for \d s\n +hurts every client: it gets 503; next: gvctl replicas\nrouter +not ready: \S+")

    def test_explain_covers_replicas_that_are_all_down_or_drained(self):
        engines = [self.engine(), self.engine()]
        r = self.router(engines)
        body = b'{"model": "m", "messages": [{"role": "user", "content": "hi"}]}'
        for e in engines:
            self.assertEqual(gvctl("drain", e.name, admin=r.admin_port)[0], 0)
        status, out, err = gvctl("explain", admin=r.admin_port, stdin=body)
        self.assertEqual((status, err), (1, ""))
        for e in engines:
            self.assertIn("- %s  draining: by an operator\n" % e.name, out)
            self.assertEqual(gvctl("undrain", e.name, admin=r.admin_port)[0], 0)
            e.refuse()
        last = r"\n- (\S+)  down: [^\n]*\n(\S+) is down too \(its port refuses connections\): the router would try it as a last"
        found = wait_for(lambda: re.search(last, gvctl("explain", admin=r.admin_port, stdin=body)[1]), "both are down")
        self.assertEqual(set(found.groups()), {e.name for e in engines})

    def test_replicas_that_are_not_up_are_listed_with_a_remedy(self):
        engines = [self.engine() for _ in range(6)]
        r = self.router(engines)
        engines[5].refuse()
        down = "%s (its port refuses connections)" % engines[5].name
        said = wait_for(lambda: re.search("replicas +6: 5 up, 1 down: .*\n", gvctl("status", admin=r.admin_port)[1]), "it is down")
        self.assertTrue(said[0].endswith(": %s\n" % down), said[0])
        self.assertEqual(json.loads(gvctl("status", "-o", "json", admin=r.admin_port)[1])["replicas_not_up"],
                         [{"name": engines[5].name, "health": "down", "why": "down: its port refuses connections"}])
        for e in engines[:4]:
            self.assertEqual(gvctl("drain", e.name, admin=r.admin_port)[0], 0)
        self.assertRegex(gvctl("status", admin=r.admin_port)[1],
                         r"replicas +6: 1 up, (?:4 draining, 1 down|1 down, 4 draining): %s, (?:\S+ \(by an operator\)"
                         r"(?:, )?){2} and 2 more: gvctl replicas\n" % re.escape(down))
        self.assertRegex(gvctl("top", admin=r.admin_port)[1], r"(?m)^%s +down +refuses +0 " % re.escape(engines[5].name))
        out = gvctl("replicas", admin=r.admin_port)[1]
        self.assertEqual(out.count("  draining: by an operator: run gvctl undrain"), 3)
        self.assertTrue(out.endswith("\nand 1 more\n"), out)
        self.assertIn("\n\n- %s  down: its port refuses connections: start the engine, or gvctl remove it\n- " %
                      engines[5].name, out)

    def test_a_replica_that_an_operator_removed_stays_listed(self):
        """Before, it was shown only in old events."""
        engines = [self.engine(), self.engine()]
        r = self.router(engines)
        r.wait_up(2)
        removed = engines[0].name
        self.assertEqual(gvctl("remove", removed, admin=r.admin_port)[0], 0)
        self.assertIn("\n\nsettings lists %s, which an operator removed: gvctl add uses it again.\n" % removed,
                      gvctl("sources", admin=r.admin_port)[1])
        self.assertIn("replicas     1: 1 up (1 removed by an operator)\n", gvctl("status", admin=r.admin_port)[1])
        self.assertEqual(json.loads(gvctl("status", "-o", "json", admin=r.admin_port)[1])["replicas_removed"], [removed])
        self.assertEqual(gvctl("add", removed, admin=r.admin_port)[0], 0)
        self.assertNotIn("removed", gvctl("sources", admin=r.admin_port)[1] + gvctl("status", admin=r.admin_port)[1])

    def test_events_in_words(self):
        e = self.engine()
        r = self.router([e])
        self.assertEqual(gvctl("drain", e.name, admin=r.admin_port)[0], 0)
        line = r"(?m)^20\d\d-\S+ \S+  - +%s +.*drain.*$" % re.escape(e.name)
        wait_for(lambda: re.search(line, gvctl("events", admin=r.admin_port)[1]), "it says so")
        status, out, err = gvctl("events", "-v", "--last", "1", admin=r.admin_port)
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"TIME +ROUTER +ABOUT +FIRST +KIND +TIMES +EVENT +WHAT\n.+\n\nAn event that repeats")
        told = json.loads(gvctl("events", "-o", "json", admin=r.admin_port)[1])["events"]
        self.assertIn("start", [t["event"] for t in told])

    def test_the_client_port_and_an_engines_port_are_recognised(self):
        sim = self.sim(*FAST)
        r = self.router([sim])
        passing = self.router([sim], "--other-paths", "pass")
        for command in (("replicas",), ("status",), ("ready",), ("metrics",), ("drain", sim.name), ("top",)):
            for port in (r.port, passing.port):
                status, out, err = gvctl(*command, admin=port)
                self.assertEqual((status, out), (1, ""))
                self.assertIn("is the client port of a router\n       The admin port is 9090 by default", err)
        status, out, err = gvctl("replicas", admin=sim.port)
        self.assertEqual((status, out), (1, ""))
        self.assertIn("is not a router", err)

    def test_config_and_metrics_in_other_forms(self):
        e = self.engine()
        r = self.router([e], "--session-header", "x-a")
        config = json.loads(gvctl("config", "-o", "json", admin=r.admin_port)[1])
        self.assertEqual(config["session-header"], {"value": "x-a", "from": "flag --session-header"})
        self.assertEqual(config["replica"]["value"], [e.url])
        samples = json.loads(gvctl("metrics", "--json", admin=r.admin_port)[1])
        told = {(s["name"], tuple(sorted(s["labels"].items()))): s["value"] for s in samples}
        text = gvctl("metrics", admin=r.admin_port)[1]
        self.assertEqual(len(told), len([line for line in text.splitlines() if line and line[0] != "#"]))
        self.assertEqual(told[("grapevine_replica_up", (("replica", e.name),))], 1)


if __name__ == "__main__":
    unittest.main()
