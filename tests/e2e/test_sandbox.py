"""The sandbox of grapevine.service: its limits, and a router that does all its work in it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import sandbox
from lib import BUILD, HOST, LIMIT, Case, binary, closed_port, wait_for
from lib_cluster import gvctl

UNIT = "deploy/systemd/grapevine.service"
SANDBOX = (sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "sandbox.py"), UNIT)
CHAT = "/v1/chat/completions"
EXPOSURE_MAX = 2.0


@unittest.skipUnless(shutil.which("systemd-analyze"), "want systemd-analyze")
class Unit(unittest.TestCase):
    def test_the_units_exposure_is_low(self):
        """0 is fully confined, 10 is not confined; systemd's own services have about 9."""
        with tempfile.TemporaryDirectory() as folder:
            unit = os.path.join(folder, "grapevine.service")
            with open(UNIT, encoding="utf-8") as f, open(unit, "w", encoding="utf-8") as out:
                out.write(f.read().replace("@BINDIR@", "/usr/bin").replace("@DOCDIR@", "/usr/share/doc/grapevine"))
            said = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--no-pager", unit],
                                  capture_output=True, text=True, timeout=LIMIT)
        level = re.search(r"Overall exposure level for grapevine\.service: ([0-9.]+)", said.stdout)
        self.assertIsNotNone(level, said.stdout + said.stderr)
        self.assertLessEqual(float(level[1]), EXPOSURE_MAX)


@unittest.skipUnless(os.path.basename(BUILD) in ("build", "cov"), "want a build without sanitizers")
@unittest.skipIf(sandbox.why_not(), sandbox.why_not() or "")
class Sandbox(Case):
    @classmethod
    def set_up(cls):
        """A copy that user nobody can read, wherever the tree lies."""
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        os.chmod(cls.folder, 0o755)
        cls.program = shutil.copy(binary("grapevine"), cls.folder)
        cls.key = os.path.join(cls.folder, "cluster.key")
        subprocess.run([binary("gvctl"), "keygen", "--out", cls.key], check=True, capture_output=True)
        os.chown(cls.key, 0, sandbox.NOBODY)
        os.chmod(cls.key, 0o640)

    def control(self, *command):
        return subprocess.run([*SANDBOX, *command], capture_output=True, timeout=LIMIT).returncode

    def test_the_sandbox_enforces_the_unit(self):
        self.assertEqual(self.control("true"), 0)
        self.assertNotEqual(self.control("touch", "/tmp/a-file"), 0)
        self.assertNotEqual(self.control("cat", "/etc/shadow"), 0)
        self.assertEqual(self.control("unshare", "-U", "true"), -signal.SIGSYS)
        self.assertEqual(self.control("chown", "65534", "/etc"), -signal.SIGSYS)

    def boxed(self, replicas, *args):
        return self.router(replicas, *args, wrap=SANDBOX, program=self.program)

    def test_a_router_does_all_its_work_in_the_sandbox(self):
        sims = [self.sim("--model", "m", "--kv-events", "vllm-0.25", "--kv-replay-port", "0") for _ in range(2)]
        listed = os.path.join(self.folder, "replicas")
        with open(listed, "w", encoding="utf-8") as f:
            f.write(sims[1].url + "\n")
        port = closed_port()
        cluster = ["--cluster-key-file", self.key, "--join", "%s:%d" % (HOST, port)]
        plain = self.router([sims[0].url], "--gossip-listen", "%s:%d" % (HOST, port), *cluster, wait_up=False)
        r = self.boxed(["http://localhost:%d" % sims[0].port], "--gossip-listen", HOST + ":0", "--node-name", "boxed",
                       "--replica-file", listed, "--replica-dns", "localhost:%d" % sims[0].port, "--access-log", "all",
                       *cluster)
        for name in sims[1].name, "localhost:%d" % sims[0].port, sims[0].name:
            wait_for(lambda: name in [e["replica"] for e in r.events("replica_up")], name + " up")
        for router in (r, plain, r):
            for stream in (False, True):
                got = self.client(router).ask("POST", CHAT, json.dumps(
                    {"model": "m", "stream": stream, "max_tokens": 8, "messages": [
                        {"role": "user", "content": "tell me more " * 2000}]}).encode(), [("Content-Type", "application/json")])
                self.assertEqual(got.status, 200, got.body)
        status, out, err = gvctl("convergence", "--wait", "--members", "2", "--timeout", "10", admin=r.admin_port)
        self.assertEqual(status, 0, out + err)
        self.assertGreater(r.metric("process_resident_memory_bytes"), 0)  # reads /proc
        wait_for(lambda: r.metric("events_feeds") >= 2 and r.events("kv_events_live"), "feeds of KV events")
        for number in (signal.SIGHUP, signal.SIGUSR1):
            r.signal(number)
        r.wait_event("log_level")
        self.assertEqual(r.admin("GET", "/readyz").status, 200)
        with open("/proc/%d/status" % r.pid, encoding="utf-8") as f:
            status = dict(line.split(":", 1) for line in f)
        self.assertEqual(status["Uid"].split(), [str(sandbox.NOBODY)] * 4)
        self.assertEqual((status["CapEff"].strip(), status["Seccomp"].strip()), ("0" * 16, "2"))
        r.stop()
        plain.stop()


if __name__ == "__main__":
    unittest.main()
