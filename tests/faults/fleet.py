"""Real processes: engine simulators and routers, each of which can be killed, stopped, started again on its port.

Counts what arrives at the engines over their restarts (/sim/stats).
"""

import ctypes
import http.client
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

from lib import HOST, Router, Sim, binary, wait_for  # noqa: E402
import place  # noqa: E402

# 30 ms of prefill, 15 ms a token: a first token after 50 ms and an answer in half a second.
ENGINE = ("--prefill-rate", "30000", "--decode-base-ms", "15", "--output-tokens", "20")
CLONE_NEWNET, CLONE_NEWUSER, CLONE_NEWNS = 0x40000000, 0x10000000, 0x00020000


def ends_well():
    """A driver that is asked to end stops everything that it started, also if a shell made it deaf to Ctrl-C."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(130))


def own_network():
    """Enters namespaces of its own, for network and mounts; whether that was possible (packets can be dropped then)."""
    libc = ctypes.CDLL(None, use_errno=True)
    flags = CLONE_NEWNET | CLONE_NEWNS | (CLONE_NEWUSER if os.getuid() else 0)
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(flags) != 0:
        return False
    try:
        if flags & CLONE_NEWUSER:
            with open("/proc/self/setgroups", "w") as f:
                f.write("deny")
            with open("/proc/self/uid_map", "w") as f:
                f.write("0 %d 1" % uid)
            with open("/proc/self/gid_map", "w") as f:
                f.write("0 %d 1" % gid)
        subprocess.run(["mount", "--make-rprivate", "/"], check=True, capture_output=True)
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True, capture_output=True)
        for host in place.NEAR, place.OTHER:
            subprocess.run(["ip", "addr", "add", host + "/32", "dev", "lo"], check=True, capture_output=True)
        subprocess.run(["nft", "add table inet faults; add chain inet faults in "
                        "{ type filter hook input priority 0; }"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


class Engine:
    """An engine simulator on a port that it keeps over restarts."""

    def __init__(self, *args, host=HOST, port=0):
        self.args = args
        self.host = host
        self.sim = None
        self.port = port
        self.before = 0  # requests that former processes took
        self.last = 0
        self.start()

    def start(self, *more):
        """Starts it, again if it has ended. More arguments are for this time alone."""
        if self.sim is not None:
            self.sim.kill()
        self.before += self.last
        self.last = 0
        self.sim = Sim(*self.args, *more, port=self.port, host=self.host)
        if self.port == 0:
            self.port = self.sim.port
            self.name = self.sim.name  # as the routers know it: a place may have another one

    def call(self, method, path, value=None, limit=2.0):
        c = http.client.HTTPConnection(self.host, self.port, timeout=limit)
        try:
            c.request(method, path, None if value is None else json.dumps(value))
            body = c.getresponse().read()
            return json.loads(body) if body else None
        finally:
            c.close()

    def fail(self, mode, **how):
        answer = self.call("POST", "/sim/fail", dict(how, mode=mode))
        if not answer or not answer.get("ok"):
            raise AssertionError("%s: %s" % (mode, answer))

    def count(self):
        """Requests that arrived in all its lives, as far as it can be asked."""
        try:
            self.last = self.call("GET", "/sim/stats", limit=0.5)["requests"]
        except (OSError, http.client.HTTPException):
            pass
        return self.before + self.last

    def kill(self):
        self.count()
        self.sim.kill()

    def stop(self):
        self.sim.popen.send_signal(signal.SIGCONT)
        self.sim.kill()


class Fleet:
    """Engines, and one router or several that share what they know. `at`: where the engines are (place.py)."""

    def __init__(self, engines=8, routers=1, args=(), engine=ENGINE, at=None):
        self.at = at or place.Place()
        self.others = []  # engines that are no replica, or not yet
        self.routers = []
        self.engines = []
        first = None
        try:
            for i in range(engines):
                self.engines.append(Engine(*engine, host=self.at.host))
            self.at.begin(self)
            began = {}
            for i in range(routers):
                cluster = []
                if routers > 1:
                    host = self.at.gossip
                    cluster = ["--gossip-listen", host + ":0", "--insecure-gossip", "on",
                               "--node-name", "r%d" % (i + 1)]
                    cluster += ["--join", "%s:%d" % (host, first)] if first else []
                began[i] = time.monotonic()
                r = self.router(*cluster, *args, replicas=self.at.replicas(self, i))
                first = first or r.gossip_port
                self.routers.append(r)
            self.up_s = 0.0  # the longest that one took to have all up
            for i, r in enumerate(self.routers):
                wait_for(lambda: self.ready(r), "router ready, all replicas up")
                self.up_s = max(self.up_s, time.monotonic() - began[i])
        except BaseException:
            self.stop()
            raise

    def router(self, *args, listen=HOST + ":0", admin=HOST + ":0", replicas=None):
        return Router(replicas or ["http://" + e.name for e in self.engines], "--listen", listen, "--admin-listen", admin,
                      "--index-bytes", "32MiB", "--drain-delay", "0", "--drain-timeout", "1s", *args,
                      defaults=False, wait_up=False)

    def ready(self, router):
        if not router.running():
            raise AssertionError("a router ended: %s" % router.lines[-5:])
        up = [v for k, v in router.metrics().items() if k.startswith("grapevine_replica_up{")]
        number = self.routers.index(router) if router in self.routers else 0  # a test may start more
        return router.admin("GET", "/readyz").status == 200 and self.at.all_up(self, number, up)

    @property
    def addresses(self):
        return [(HOST, r.port) for r in self.routers]

    def drain(self, engine, on):
        """At all routers: they share the wish."""
        got = self.routers[0].admin("POST", "/%s?replica=%s" % ("drain" if on else "undrain", engine.name))
        if got.status // 100 != 2:
            raise AssertionError("drain: %r" % got)

    def count(self):
        return sum(e.count() for e in self.engines + self.others)

    def sum(self, name):
        """A counter of all routers, over its labels."""
        return sum(v for r in self.routers for k, v in r.metrics().items()
                   if k == "grapevine_" + name or k.startswith("grapevine_%s{" % name))

    def downs(self):
        """The number of times that a replica was marked down."""
        return sum(len(r.events("replica_down")) for r in self.routers)

    def rejected(self, engine):
        """Answers of 4xx that the routers had of it."""
        of = 'grapevine_replica_answers_total{replica="%s",outcome="rejected"}' % engine.name
        return sum(r.metrics().get(of, 0) for r in self.routers)

    def failed_at(self, replicas):
        """Ids of requests that broke, or waited in vain, at one of these replicas."""
        return {e["id"] for r in self.routers for e in r.events("upstream_failed") if e["replica"] in replicas}

    def stop(self):
        """Ends everything; what a router left that it should not is an error."""
        error = None
        self.stop_s = 0.0  # the longest that a router took
        for part in self.routers + self.engines + self.others:
            began = time.monotonic()
            try:
                part.expected = None
                part.stop()
            except AssertionError as e:
                error = error or e
            if part in self.routers:
                self.stop_s = max(self.stop_s, time.monotonic() - began)
        self.at.end()
        if error is not None:
            raise error


def drop(port, on):
    """A black hole: packets to and from the port are dropped without a word, until it is off."""
    if on:
        for side in ("dport", "sport"):
            subprocess.run(["nft", "add rule inet faults in tcp %s %d drop" % (side, port)], check=True)
    else:
        subprocess.run(["nft", "flush chain inet faults in"], check=True)


__all__ = ["ENGINE", "Engine", "Fleet", "HOST", "Router", "binary", "drop", "own_network", "wait_for", "time"]
