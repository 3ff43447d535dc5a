"""Lines of gvctl that align for any name, and fit the terminal."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import termios
import unittest

from lib import Case, answer_json, binary
from lib_cluster import gvctl

LONG = "engine-7d9c8b6f5d-x2x4z.engines.default.svc.cluster.local:8000"
WHY = "holds 4900 of 5210 prompt tokens; 10.0.0.3:8000 is next with 1200"
SENTENCE = "Replica %s is down: its port refuses connections, and it has been so for a while now, as all can see." % LONG


def at_terminal(args, columns, stdin=None):
    """gvctl's output on a terminal of that width; with `stdin` the terminal is also its input."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    p = subprocess.Popen([binary("gvctl"), *args], stdin=theirs if stdin else subprocess.DEVNULL, stdout=theirs, stderr=theirs,
                         env={"PATH": os.environ["PATH"], "TERM": "xterm", "NO_COLOR": "1"})
    os.close(theirs)
    out = b""
    try:
        while True:
            out += os.read(ours, 65536)
            if stdin and b"standard input" in out:
                os.write(ours, stdin)
                stdin = None
    except OSError:  # its end, on Linux
        pass
    p.wait()
    os.close(ours)
    return out.decode().replace("\r\n", "\n")


class Lines(Case):
    def setUp(self):
        super().setUp()
        self.port = self.engine()

    def says(self, answer):
        self.port.closes(answer_json(answer))
        return "http://" + self.port.name

    def decisions(self):
        return {"decisions": [{"id": i, "time_ms": 1000 * i, "choice": name, "why": "cached", "why_text": WHY, "prompt_tokens": 123456, "cached_tokens": 123456,
                               "outcome": {"end": "ok", "result": "ok", "status": 200, "ttft_ms": 12345}}
                              for i, name in enumerate(("a:1", LONG))]}

    def test_decisions_align_and_fit(self):
        admin = self.says(self.decisions())
        piped = gvctl("decisions", admin=self.port.port)[1].splitlines()
        self.assertEqual(len({line.index(word) for line, word in zip(piped, ("WHY", WHY, WHY))}), 1)
        self.assertEqual(len(piped), 3, "a line each where a program reads")
        self.assertIn(LONG, piped[2])
        for columns in (80, 100, 200):
            shown = at_terminal(["--admin", admin, "decisions"], columns).splitlines()
            self.assertEqual(len({line.index(word) for line, word in zip([x for x in shown if "END" in x or "200 ok" in x],
                                                                          ("END", "200 ok", "200 ok"))}), 1, shown)
            self.assertLessEqual(max(map(len, shown)), columns, shown)
            self.assertEqual("\u2026" in "".join(shown), columns < 200)
            self.assertIn(WHY.replace(" ", ""), "".join(shown).replace(" ", ""))
            self.assertEqual(any(line.startswith(" " * 14 + "holds") for line in shown), columns < 200, "WHY has its own line")

    def test_events_align_and_fit(self):
        names = ("r1", "grapevine-7d9c8b6f5d-1")
        admin = self.says({"nodes": {name: {"router": name, "since_ms": 1, "changed": 1, "events": [
            {"id": 1, "change": 1, "time_ms": 1000 * i, "last_ms": 1000 * i, "count": 1, "kind": "death", "event": "x", "about": LONG,
             "text": SENTENCE + str(i)}]} for i, name in enumerate(names)}})
        piped = gvctl("events", admin=self.port.port)[1].splitlines()
        self.assertEqual(len({line.index(word) for line, word in zip(piped, ("WHAT", "Replica", "Replica"))}), 1, piped)
        shown = at_terminal(["--admin", admin, "events"], 80).splitlines()
        self.assertLessEqual(max(map(len, shown)), 80, shown)
        self.assertNotIn("ABOUT", shown[0])
        self.assertIn("".join(SENTENCE.split()), "".join("".join(shown).split()))

    def test_a_thousand_replicas_are_listed_and_fit(self):
        """All replicas, those in trouble first, cut to the terminal's width: a name of 63 characters did not fit."""
        rows = [{"name": "%d-%s" % (i, LONG), "health": "up", "load": {"requests": i}, "models": {"names": ["llama-3.1-70b-instruct-awq"]}}
                for i in range(1000)]
        rows[700].update(health="down", why="refuses", why_text="down: its port refuses connections")
        rows[800].update(why="rejects", why_text="on trial: it rejects")
        rows[900].update(avoided=True, why="errors", why_for_ms=4100, why_text="avoided: its answers failed (5xx)")
        self.says(rows)
        piped = gvctl("replicas", admin=self.port.port)[1].splitlines()[:1001]
        self.assertEqual([line.split("-")[0] for line in piped[1:5]], ["700", "900", "800", "0"])
        self.assertEqual(len({line.split("-")[0] for line in piped[1:]}), 1000)
        for columns in (80, 120):
            shown = at_terminal(["--admin", "http://" + self.port.name, "replicas"], columns).splitlines()
            self.assertLessEqual(max(map(len, shown)), columns)
            table = shown[:1001]
            self.assertEqual({line.index(word) for line, word in zip(table, ["HEALTH", "down", "avoided"] + ["up"] * 998)},
                             {table[0].index("HEALTH")})
            self.assertIn("\u2026", table[1])

    def test_replicas_name_their_models(self):
        def row(name, *models):
            return {"name": name, "health": "up", "models": {"names": list(models), "count": len(models), "from": "engine"}}
        self.says([row("a:1", "llama"), row("b:2", "llama", "qwen", "sql"), row("c:3")])
        out = gvctl("replicas", admin=self.port.port)[1]
        self.assertRegex(out, r"MODEL\na:1 .* llama\nb:2 .* llama \+2\nc:3 .* 0\n")
        self.assertRegex(gvctl("replicas", "--model", "qwen", admin=self.port.port)[1], r"MODEL\nb:2 .*\n$")
        self.assertEqual([r["name"] for r in json.loads(gvctl("replicas", "--model", "llama", "--json", admin=self.port.port)[1])], ["a:1", "b:2"])
        self.assertEqual(gvctl("queue", "--model", "x", admin=self.port.port)[0], 2)

    def test_explain_says_that_it_reads_standard_input(self):
        admin = self.says({"policy": "cache_aware", "replicas": [], "choice": "a:1"})
        out = at_terminal(["--admin", admin, "explain"], 80, stdin=b"{}\n\x04")
        self.assertIn("gvctl: explain reads a JSON request body from standard input; end it with Ctrl-D\n", out)
        self.assertNotIn("standard input", gvctl("explain", admin=self.port.port, stdin=b"{}")[2])


if __name__ == "__main__":
    unittest.main()
