"""`make demo` at a reduced length: it prints the README's promises, and leaves nothing behind."""

import os
import re
import signal
import subprocess
import unittest
import urllib.request

from lib import LIMIT, wait_for

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
POLICIES = ["round_robin", "session", "cache_aware"]


def demo(**env):
    """The demo's output. The demo leads its session, which has exactly the processes that it started."""
    p = subprocess.Popen(["tests/bench/demo.sh"], cwd=TOP, env={**os.environ, "BUILD": BUILD, "REQUESTS": "40", **env},
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        out, err = p.communicate(timeout=10 * LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        raise
    return p, out, err


def left_of(group):
    """The processes of a group that still run."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as f:
                fields = f.read().rsplit(")", 1)[1].split()
            if int(fields[2]) == group and fields[0] != "Z":
                found.append(int(pid))
        except OSError:
            pass
    return found


class Demo(unittest.TestCase):
    def part(self, out, title):
        """The lines below a title, up to an empty line."""
        lines = out.splitlines()
        at = [i for i, line in enumerate(lines) if line.startswith(title)]
        self.assertEqual(len(at), 1, "%s in:\n%s" % (title, out))
        below = lines[at[0] + 1:]
        return below[:below.index("")] if "" in below else below

    def check(self, out):
        head, _, *rows = self.part(out, "Results at the clients")
        names = re.split(r"  +", head.strip())
        rows = [dict(zip(names, re.split(r"  +", row.strip()))) for row in rows]
        self.assertEqual([row["policy"] for row in rows], POLICIES)
        for row in rows:
            self.assertEqual(row["errors"], "0")
            self.assertRegex(row["from cache"], r"^\d+\.\d %$")
            self.assertRegex(row["first token"], r"^\d+\.\d\d s$")
        self.assertRegex(out, r"With cache_aware the engines took \d+ % of the prompt tokens from their caches\n"
                              r"\(round_robin: \d+ %, session: \d+ %\), and the first token came\n")
        turns = [line.split() for line in self.part(out, "One conversation")[1:]]
        self.assertEqual([(t[0], t[2]) for t in turns], [(str(i + 1), str(i % 3 + 1)) for i in range(6)])
        self.assertGreater(int(turns[3][5]), 0, "router 1 knows what it sent in the first turn")
        self.assertEqual(len([line for line in self.part(out, "Cluster members") if " alive " in line]), 3)
        self.assertIn("\nAll 3 living routers hold the same state", out)
        # On a machine with occasional pauses an engine may be avoided for a moment.
        believed = self.part(out, "Replicas, seen by")
        self.assertEqual(len([line for line in believed if re.search(r" (up|avoided) ", line)]), 4, believed)

    def test_the_demo_keeps_the_readmes_promises_and_cleans_up(self):
        p, out, err = demo()
        self.assertEqual(p.returncode, 0, out + err)
        self.check(out)
        self.assertIn("The demo has stopped its processes", out)
        self.assertEqual(left_of(p.pid), [])

    def test_commands_that_a_running_demo_prints_work(self):
        p, out, err = demo(KEEP="1", REQUESTS="5")
        try:
            self.assertEqual(p.returncode, 0, out + err)
            self.assertNotIn("The demo has stopped its processes", out)
            page = re.match(r"Watch it work: (http://127\.0\.0\.1:\d+/) ", out)  # the first thing that it says
            asked = urllib.request.Request(page[1], headers={"Accept": "text/html"})
            with urllib.request.urlopen(asked, timeout=LIMIT) as answer:
                self.assertIn(b"<title>Grapevine</title>", answer.read())
            for line in self.part(out, "Try it by hand"):
                got = subprocess.run(["bash", "-c", re.split(r"    |$", line.strip())[0]], cwd=TOP, capture_output=True,
                                     text=True, timeout=LIMIT)
                self.assertEqual(got.returncode, 0, line + got.stderr)
                self.assertRegex(got.stdout, r"\[DONE\]|127\.0\.0\.1:|grapevine_requests")
            stop = re.search(r"Stop it with: (kill [\d ]+)$", out, re.M)
            self.assertEqual(sorted(map(int, stop[1].split()[1:])), sorted(left_of(p.pid)))
            subprocess.run(stop[1].split(), check=True)
            wait_for(lambda: left_of(p.pid) == [], "all of it stopped")
        finally:
            if left_of(p.pid):
                os.killpg(p.pid, signal.SIGKILL)

    def test_a_demo_that_cannot_start_says_why(self):
        p, _, err = demo(BUILD="/nowhere")
        self.assertEqual((p.returncode, err), (1, "/nowhere/grapevine is not built; try: make everything\n"))


if __name__ == "__main__":
    unittest.main()
