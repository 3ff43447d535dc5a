#!/usr/bin/env python3
"""A router's cost of viewers: CPU time of a router (one of three) under the same load, with 0, 1, 100 and 0 viewers of
/live, each read as it comes.

usage: viewers.py [SECONDS [REPLICAS]]       (BUILD=build)

More than four replicas are addresses of 127.0.0.0/8 of one simulated engine, and one router has them.
"""
import os
import selectors
import socket
import sys
import threading
import time

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TOP, "tests", "e2e"))
os.chdir(TOP)

from lib import HOST, Client  # noqa: E402
from lib_cluster import Clustered  # noqa: E402
from test_engines import CHAT, message, words  # noqa: E402


def cpu_s(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Viewers:
    """Reads all that comes, and counts it."""

    def __init__(self, port, count):
        self.selector, self.bytes, self.open = selectors.DefaultSelector(), 0, True
        self.socks = [socket.create_connection((HOST, port)) for _ in range(count)]
        for s in self.socks:
            s.sendall(b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.selector.register(s, selectors.EVENT_READ)
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self):
        while self.open:
            for key, _ in self.selector.select(0.1):
                self.bytes += len(key.fileobj.recv(1 << 20))

    def close(self):
        self.open = False
        self.thread.join()
        for s in self.socks:
            s.close()


class Cost(Clustered):
    def load(self, port, seed, stopping):
        c, i = Client(port), 0
        while not stopping.wait(0.02):
            i += 1
            c.post(CHAT, {"model": "sim", "max_tokens": 4, "messages": [
                message("user", words("u%d" % ((seed + i) % 20), 300))]})
        c.close()

    def runTest(self):
        seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10
        many = int(sys.argv[2]) if len(sys.argv) > 2 else 0
        if many:
            port = self.sim(host="0.0.0.0").port
            nodes = [self.router(["http://127.1.%d.%d:%d" % (i // 200, 1 + i % 200, port) for i in range(many)])]
        else:
            sims = [self.sim() for _ in range(4)]
            nodes = self.cluster(3, sims)
        stopping = threading.Event()
        threads = [threading.Thread(target=self.load, args=(nodes[0].port, k, stopping)) for k in range(4)]
        for t in threads:
            t.start()
        time.sleep(3)
        print("| viewers | requests/s | CPU of the router | sent to a viewer |\n|---|---|---|---|", flush=True)
        for count in (0, 1, 100, 0):
            viewers = Viewers(nodes[0].admin_port, count)
            time.sleep(1)
            cpu, begun = cpu_s(nodes[0].pid), time.monotonic()
            requests, sent = nodes[0].metric("requests_total"), viewers.bytes
            time.sleep(seconds)
            took = time.monotonic() - begun
            print("| %d | %.0f | %.2f %% of a core | %s |" % (
                count, (nodes[0].metric("requests_total") - requests) / took, 100 * (cpu_s(nodes[0].pid) - cpu) / took,
                "%.1f KB/s" % ((viewers.bytes - sent) / count / took / 1000) if count else "-"), flush=True)
            viewers.close()
        stopping.set()
        for t in threads:
            t.join()


if __name__ == "__main__":
    case = Cost()
    result = case.run()
    sys.exit(not result.wasSuccessful())
