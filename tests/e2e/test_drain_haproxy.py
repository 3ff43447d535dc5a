"""A rolling restart of all routers behind HAProxy in TCP mode, which only knows what /readyz says.

Clients never retry and HAProxy connects once, so every fault shows as an error.
"""

import asyncio
import csv
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from lib import HOST, Client, closed_port, wait_for

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "faults"))

import fleet  # noqa: E402
import load  # noqa: E402

HAPROXY = shutil.which("haproxy") or "/usr/sbin/haproxy"

# Twenty checks: on a busy machine a few of them are late.
DELAY = "4s"
CONFIG = """
global
    maxconn 4000
    stats socket %s
defaults
    mode tcp
    retries 0
    timeout connect 2s
    timeout client 60s
    timeout server 60s
listen routers
    bind %s:%d
    balance roundrobin
    option httpchk GET /readyz
%s
"""


class Restarted:
    """A router on ports that it keeps."""

    def __init__(self, fleet_, name, seed):
        self.fleet, self.name, self.seed = fleet_, name, seed
        self.now = name  # serves in its place
        self.port, self.admin = closed_port(), closed_port()
        self.gossip = closed_port()
        self.router = None

    def start(self):
        self.router = self.fleet.router(
            "--gossip-listen", "%s:%d" % (HOST, self.gossip), "--insecure-gossip", "on", "--node-name", self.name,
            *(["--join", "%s:%d" % (HOST, self.seed)] if self.seed else []), "--drain-delay", DELAY,
            "--drain-timeout", "20s", listen="%s:%d" % (HOST, self.port), admin="%s:%d" % (HOST, self.admin))

    def ready(self):
        wait_for(lambda: self.fleet.ready(self.router), "%s ready" % self.name)

    def restart(self):
        self.router.signal(15)
        status = self.router.wait(30)
        self.start()
        self.ready()
        return status


@unittest.skipUnless(os.access(HAPROXY, os.X_OK), "haproxy is not installed")
class RollingRestart(unittest.TestCase):
    def setUp(self):
        self.fleet = fleet.Fleet(engines=4, routers=0)
        self.addCleanup(self.fleet.stop)
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.nodes = []
        for i in range(3):
            self.nodes.append(Restarted(self.fleet, "r%d" % (i + 1), self.nodes[0].gossip if i else None))
            self.nodes[i].start()
            self.addCleanup(lambda n=self.nodes[i]: n.router.stop())
        self.nodes[0].seed = self.nodes[1].gossip  # joins on its return
        for n in self.nodes:
            n.ready()
        self.port = closed_port()
        self.balance()

    def balance(self):
        servers = "\n".join("    server %s %s:%d check port %d inter 200ms fall 1 rise 1" %
                            (n.name, HOST, n.port, n.admin) for n in self.nodes)
        path = os.path.join(self.folder, "haproxy.cfg")
        self.stats = os.path.join(self.folder, "stats")
        with open(path, "w") as f:
            f.write(CONFIG % (self.stats, HOST, self.port, servers))
        self.haproxy = subprocess.Popen([HAPROXY, "-db", "-f", path], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        self.addCleanup(self.haproxy.wait)
        self.addCleanup(self.haproxy.kill)

        def connected():
            try:
                Client(self.port).close()
                return True
            except OSError:
                return False
        wait_for(connected, "the port of HAProxy")

    def is_used(self, name):
        """True if HAProxy reports that it uses that router."""
        with socket.socket(socket.AF_UNIX) as s, s.makefile() as answer:
            s.connect(self.stats)
            s.sendall(b"show stat\n")
            return any(row["svname"] == name and row["status"] == "UP" for row in csv.DictReader(answer))

    async def restart_all(self, the_load):
        """Restarts all under load; ends a moment after the last router is back."""
        until = [time.monotonic() + 600]

        async def arrivals():
            while time.monotonic() < until[0]:
                await the_load.run(0.5)

        async def kept():
            while time.monotonic() < until[0]:
                await the_load.keep_asking(min(until[0], time.monotonic() + 3), 0.2)
        tasks = [asyncio.ensure_future(arrivals())] + [asyncio.ensure_future(kept()) for _ in range(10)]
        await asyncio.sleep(1)
        for n in self.nodes:
            status = await asyncio.to_thread(n.restart)
            self.assertEqual(status, 0)
            await asyncio.to_thread(wait_for, lambda: self.is_used(n.now), "HAProxy sends to %s" % n.now)  # noqa: B023
        before = len(the_load.results)
        await asyncio.to_thread(wait_for, lambda: len(the_load.results) > before + 20, "requests since")
        until[0] = 0
        await asyncio.gather(*tasks)
        await the_load.finish()

    def test_no_client_notices_a_rolling_restart(self):
        the_load = load.Load([(HOST, self.port)], rate=40, sessions=8)
        asyncio.run(self.restart_all(the_load))
        failed = [r for r in the_load.results if not r.good]
        self.assertEqual([(r.tag, r.failure, r.note, r.tokens) for r in failed], [])
        self.assertGreater(len(the_load.results), 200)
        self.assertGreater(len([r for r in the_load.results if r.tag == "kept"]), 50)


if __name__ == "__main__":
    unittest.main()
