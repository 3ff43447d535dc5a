"""In namespaces of its own, with a real service: the effects of those faults that test_nemeses.py cannot play on
faked machines. Run by test_lab.py.

    faults_story.py BUILD_DIR FOLDER NAMES       the latter a regular expression

Each fault begins, is seen where it should be, ends, and is not seen any more. Prints a line for each, and ends with
status 1 at the first that fails."""

import json
import os
import random
import re
import resource
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from checkers.naming import LIAR  # noqa: E402
from history import Recorder  # noqa: E402
from lab import found  # noqa: E402
from lab.service import Options, Service  # noqa: E402
from nemeses.base import shared  # noqa: E402
from nemeses.disk import Disk  # noqa: E402
from nemeses.names import ENGINES, SPARES, Names  # noqa: E402

LIMIT_S = 30 * float(os.environ.get("SLOW", "1"))


class Last(random.Random):
    """Always chooses the last option: a clock that is off by a month, not by 50 ms."""

    def choice(self, seq):
        return seq[-1]

    def random(self):
        return 0.0


def wait_for(condition, what):
    end = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > end:
            sys.exit("%s: not so after %d s" % (what, LIMIT_S))
        time.sleep(0.02)


def text(path):
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return ""


def family(pid):
    """A process and its children."""
    return [pid] + [int(p) for p in text("/proc/%d/task/%d/children" % (pid, pid)).split()]


class Signs:
    """Checks for the effect of each fault at a router, by the fault's name."""

    def __init__(self, service):
        self.service = service
        self.key = text(service.key_file)

    def clock_off(self, r):
        """A program started like the router reads another time, and the router has the library."""
        began = time.time()
        told = float(subprocess.run(["date", "+%s.%N"], env=dict(os.environ, **r.env), capture_output=True).stdout)
        return not began - 0.1 <= told <= time.time() + 0.1 and "clock_shift.so" in text("/proc/%d/maps" % r.pid)

    def ask(self, r, name=ENGINES, seconds=10):
        """(the name server's answer for the engines, seconds that it took)"""
        name = b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"
        began = time.monotonic()
        with r.host.inside(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(seconds)
            s.sendto(struct.pack("!6H", 7, 0x100, 1, 0, 0, 0) + name + struct.pack("!2H", 1, 1),
                     (shared(self.service, Names, self.service).service.hosts["ns"].address, 53))
            return s.recv(4096), time.monotonic() - began

    def dns_lie(self, r):
        answer, _ = self.ask(r)
        return not all(socket.inet_aton(e.address) in answer for e in self.service.engines)

    def dns_fail(self, r):
        return struct.unpack("!6H", self.ask(r)[0][:12])[3] == 0

    def dns_slow(self, r):
        try:
            return self.ask(r)[1] > 0.5
        except TimeoutError:  # a datagram was lost
            return False

    def dns_silent(self, r):
        try:
            return not self.ask(r, SPARES[0], 0.2)
        except TimeoutError:
            return True

    def disk_frozen(self, r):
        """A program started like the router cannot write a line."""
        try:
            subprocess.run(["sh", "-c", "there-is-no-such-program"], env=dict(os.environ, **r.env), capture_output=True, timeout=0.2)
        except subprocess.TimeoutExpired:
            return "log_freeze.so" in text("/proc/%d/maps" % r.pid)
        return False

    @staticmethod
    def member_lies(r):
        said = json.dumps(r.admin("GET", "/replicas")[1])
        alive = [m for m in r.admin("GET", "/members")[1]["members"] if m["name"] == LIAR and m["state"] == "alive"]
        return bool(alive) and "10.77.251." in said

    def limited(self, r, which):
        try:
            return resource.prlimit(r.pid, which)[0] != resource.getrlimit(which)[0]
        except ProcessLookupError:  # it could not live with that
            return True

    def disk_full(self, _):
        return os.statvfs(shared(self.service, Disk, self.service).folder).f_bavail == 0

    def keys(self, _):
        now = text(self.service.key_file)
        changed, self.key = now != self.key, now
        return changed

    def of(self, name):
        if name.startswith("clock-") and name != "clock-monotonic":
            return self.clock_off
        return {"clock-monotonic": lambda r: any(os.readlink("/proc/%d/ns/time" % p) != os.readlink("/proc/self/ns/time")
                                                 for p in family(r.pid)),
                "descriptors": lambda r: self.limited(r, resource.RLIMIT_NOFILE),
                "memory": lambda r: self.limited(r, resource.RLIMIT_AS),
                "memory-group": lambda r: "/jepsen-lite-" in text("/proc/%d/cgroup" % r.pid),
                "disk-full": self.disk_full, "rotate-keys": self.keys,
                "upgrade": lambda r: r.build != self.service.build,
                "dns-lie": self.dns_lie, "dns-fail": self.dns_fail, "dns-slow": self.dns_slow,
                "dns-silent": self.dns_silent, "disk-frozen": self.disk_frozen, "member-lies": self.member_lies}[name]


def tell(build, folder, names):
    service = Service(Options(build=build, routers=3, engines=2), Recorder(os.path.join(folder, "history.jsonl")), folder)
    nemeses = [cls() for name, cls in sorted(found.nemeses().items()) if re.match(names, name)]
    lacking = {n.name: why for n in nemeses for why in [n.missing()] if why}
    for name, why in lacking.items():
        print("skipped %s: %s" % (name, why))
    nemeses = [n for n in nemeses if n.name not in lacking]
    for n in nemeses:
        n.prepare(service)
    service.start()
    signs = Signs(service)
    for n in nemeses:
        sign = signs.of(n.name)
        seen = lambda: [r for r in service.routers if r.alive and sign(r)]  # noqa: B023
        if seen():
            sys.exit("%s: seen before it began" % n.name)
        view = service.with_layer()
        about = n.start(view, Last(1))
        wait_for(seen, "%s is seen" % n.name)
        n.stop(view)
        seen() if n.name == "rotate-keys" else None  # the last step may have been taken meanwhile
        wait_for(lambda: all(r.alive and service.ready(r) for r in service.routers) and not seen(), n.name + " is mended")
        print("ok  %s: %s" % (n.name, about["text"]), flush=True)
    service.stop()


if __name__ == "__main__":
    tell(*sys.argv[1:])
