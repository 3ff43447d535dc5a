"""Clocks that are off, jump, or go wrong: the wall clock by a preloaded library, the monotonic one at a restart."""

import os
import shutil
import struct
import subprocess
import threading
import time

from .base import Nemesis, compiled, names, plural, preload, shared


class Clocks:
    """The wall clock's error of each router in ms, summed over faults; and the time at which it is stopped."""

    def __init__(self, service):
        self.folder = os.path.join(service.folder, "clocks")
        self.lock, self.shifts = threading.Lock(), {}
        library = compiled("clock_shift", self.folder)
        for r in service.routers:
            self.write(r.name, 0)
            self.stand(r.name, 0)
            preload(r, library)
            r.env["CLOCK_SHIFT_FILE"] = self.path(r.name)

    def path(self, name):
        return os.path.join(self.folder, name)

    def stand(self, name, at_ms):
        """0: it goes."""
        self.write(name, at_ms, 8)

    def write(self, name, ms, place=0):
        """In place: the process has the file mapped."""
        fd = os.open(self.path(name), os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            os.pwrite(fd, struct.pack("=q", int(ms)), place)
        finally:
            os.close(fd)

    def shift(self, owner, name, ms):
        with self.lock:
            by = self.shifts.setdefault(name, {})
            by[owner] = ms
            self.write(name, sum(by.values()))

    def drop(self, owner):
        with self.lock:
            for name, by in self.shifts.items():
                if by.pop(owner, None) is not None:
                    self.write(name, sum(by.values()))


class _Clock(Nemesis):
    seconds = (3, 15)

    @staticmethod
    def missing():
        return None if shutil.which("cc") else "cc, for the library that shifts clocks (Debian: gcc)"

    def prepare(self, service):
        shared(service, Clocks, service)

    def clocks(self, service):
        clocks = shared(service, Clocks, service)
        self.later(clocks.drop, self)
        return clocks

    @staticmethod
    def minority(service, rng):
        routers = names(service.routers)
        return sorted(rng.sample(routers, rng.randint(1, max(1, (len(routers) - 1) // 2))))


def told(ms):
    unit, size = next((u for u in (("h", 3600000), ("s", 1000), ("ms", 1)) if abs(ms) >= u[1]), ("ms", 1))
    return "%.3g %s %s" % (abs(ms) / size, unit, "ahead" if ms > 0 else "behind")


SKEWS_MS = (50, 900, 4000, 7500, 20000, 90000, 3600000, 30 * 86400000)


class Skew(_Clock):
    """The wall clock of a minority is off: by less than a time slice, by more, by hours, by a month."""
    name = "clock-skew"

    def start(self, service, rng):
        chosen, ms = self.minority(service, rng), rng.choice((-1, 1)) * rng.choice(SKEWS_MS)
        clocks = self.clocks(service)
        for name in chosen:
            clocks.shift(self, name, ms)
        return {"hosts": chosen, "shift_ms": ms, "harmless": True,
                "text": "the clock of %s is %s" % (plural(chosen), told(ms))}


class Jump(_Clock):
    """The wall clock of a minority jumps to and fro, again and again."""
    name = "clock-jump"

    def start(self, service, rng):
        chosen, ms, every_s = self.minority(service, rng), rng.choice(SKEWS_MS[1:7]), rng.uniform(0.2, 2)
        clocks = self.clocks(service)
        self.background(self.run, clocks, chosen, ms, every_s)
        return {"hosts": chosen, "shift_ms": ms, "harmless": True,
                "text": "the clock of %s jumps %s and back every %.1f s" % (plural(chosen), told(ms), every_s)}

    def run(self, clocks, chosen, ms, every_s):
        at = 0
        while not self.over.is_set():
            at = ms - at
            for name in chosen:
                clocks.shift(self, name, at)
            self.over.wait(every_s)


class Frozen(_Clock):
    """The wall clock of some or all routers stops, to the millisecond; at the end it jumps to the present time."""
    name = "clock-frozen"

    def start(self, service, rng):
        chosen = names(service.routers) if rng.random() < 0.5 else self.minority(service, rng)
        clocks, at_ms = self.clocks(service), int(time.time() * 1000)
        for name in chosen:
            self.later(clocks.stand, name, 0)
            clocks.stand(name, at_ms)
        return {"hosts": chosen, "harmless": True, "text": "the clock of %s stands; at the end it jumps to the time that it is" %
                plural(chosen)}


class Rate(_Clock):
    """The wall clock of a minority is too slow or too fast, or steps on the spot: in steps of 20 ms."""
    name = "clock-rate"

    def start(self, service, rng):
        chosen, rate = self.minority(service, rng), rng.choice((0, 0.5, 0.9, 0.99, 1.01, 1.1, 1.5, 3))
        clocks = self.clocks(service)
        self.background(self.run, clocks, chosen, rate)
        return {"hosts": chosen, "rate": rate, "harmless": True, "text": "the clock of %s %s" % (
            plural(chosen), "stands" if rate == 0 else "goes %g times as fast as it should" % rate)}

    def run(self, clocks, chosen, rate):
        step_s, steps = 0.02, 0
        while not self.over.wait(step_s):
            steps += 1
            for name in chosen:
                clocks.shift(self, name, steps * step_s * 1000 * (rate - 1))


class Monotonic(Nemesis):
    """A router restarts on a machine that has been up for longer (a time namespace); back at the end."""
    name = "clock-monotonic"
    seconds = (3, 12)

    @staticmethod
    def missing():
        if not os.path.exists("/proc/self/ns/time"):
            return "time namespaces (Linux 5.6)"
        tried = subprocess.run(["unshare", "-T", "--monotonic", "1000", "true"], capture_output=True)
        return None if tried.returncode == 0 else "unshare -T (Debian 12: util-linux) as root"

    def start(self, service, rng):
        chosen = self.some(service, rng, "routers", 1)
        if not chosen:
            return self.nobody()
        router, up_s = chosen[0], rng.choice((1000, 86400, 40 * 86400, 10 * 365 * 86400))
        wrap = ["unshare", "-T", "--monotonic", str(up_s), "--boottime", str(up_s)]
        self.later(self.back, router, len(wrap))
        router.wrap[:0] = wrap
        router.restart()
        return {"hosts": [router.name], "text": "%s restarts, and its monotonic clock is %s" % (
            router.name, told(up_s * 1000))}

    @staticmethod
    def back(router, tokens):
        del router.wrap[:tokens]
        router.restart()
