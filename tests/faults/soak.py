#!/usr/bin/env python3
"""`make soak`: an hour of mixed faults at a fast clock, three routers; nothing may be left behind.

    tests/faults/soak.py [--minutes 60] [--speed 10] [--rate 60] [--routers 3] [--seed 1]

The engines compute `speed` times as fast and the routers' intervals are as much shorter, so the hour takes
60 / speed minutes. At any time one or two of eight engines have a fault; clients ask, leave in the middle, and
trickle. Fails if, from the end of the first quarter to the end,

    a router's resident memory grew by more than GROWTH_MAX_KB,
    a descriptor is left open at a router beyond those it had when it was idle,
    a request is in flight, booked or in memory when all is quiet,
    a client got a wrong answer (one that no single engine sent).
"""

import argparse
import asyncio
import collections
import http.client
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import fleet as f  # noqa: E402
import load as l  # noqa: E402

GROWTH_MAX_KB = 4096
LEFT = ("requests_open", "bookings", "replica_requests", "replica_prefill_tokens", "replica_context_tokens")

BY_REQUEST = [("status_500", {"health": True}), ("draining", {}), ("full", {}), ("status_429", {}),
              ("reset_mid_stream", {"after_chunks": 3}), ("error", {"after_chunks": 2}), ("end", {"after_chunks": 2}),
              ("garbage", {}), ("garbage", {"after_chunks": 3}), ("hang", {}), ("stuck", {}), ("sleep", {}),
              ("crawl", {"factor": 10}), ("none", {"health": "503"}), ("none", {"health": "hang"}),
              ("refuse", {"for_ms": 2000})]
BY_PROCESS = ["kill", "stop", "die", "term"]


def compressed(speed):
    """Settings in units of time, for engines that are so many times faster; cf. tests/bench/lib.sh."""
    def ms(real):
        return "%dms" % max(20, real // speed)
    return ["--generation", "%dms" % max(1000, 15000 // speed), "--reuse-horizon", "%dms" % max(1000, 120000 // speed),
            "--ttl", "%ds" % max(10, 600 // speed),  # the index is as full as it gets within the first quarter
            "--scrape-interval", "%dms" % max(100, 2000 // speed),
            "--health-interval", "%dms" % max(100, 10000 // speed), "--client-head-timeout", ms(10000),
            "--client-body-timeout", ms(30000), "--client-idle-timeout", ms(60000), "--health-timeout", ms(5000),
            "--upstream-connect-timeout", ms(5000), "--upstream-first-byte-timeout", ms(60000),
            "--upstream-first-token-timeout", ms(60000), "--upstream-idle-timeout", ms(60000),
            "--upstream-whole-answer-timeout", ms(300000)]


def known(options):
    """The flags that this router has; a soak of another build must not fail for a name."""
    text = subprocess.run([f.binary("grapevine"), "--help"], capture_output=True, text=True).stdout
    return [x for i in range(0, len(options), 2) if options[i] + " " in text for x in options[i:i + 2]]


class Soak:
    def __init__(self, o):
        self.o, self.rng = o, random.Random(o.seed)
        flags = known(compressed(o.speed)) + ["--index-bytes", "8MiB", "--gossip-ring-bytes", "256KiB"]
        self.fleet = f.Fleet(8, o.routers, flags, f.ENGINE + ("--speed-up", str(o.speed)))
        self.load = l.Load(self.fleet.addresses, o.rate, o.seed)
        self.counts = collections.Counter()
        self.failures = collections.Counter()
        self.end = 0
        self.busy = set()  # engines that have a fault
        self.memory = []   # (minute, [KiB of each router])

    # --- what goes wrong ---------------------------------------------------------------------------

    async def faults(self):
        """One fault after another, each at an engine that has none; two of these run at a time."""
        while time.monotonic() < self.end:
            e = self.rng.choice([e for e in self.fleet.engines if e not in self.busy])
            self.busy.add(e)
            try:
                await self.one_fault(e)
            except (OSError, http.client.HTTPException):
                self.counts["fault that came too late"] += 1
                await asyncio.to_thread(e.start)
            self.busy.discard(e)
            await asyncio.sleep(self.rng.uniform(0, 1))

    async def one_fault(self, e):
        lasts = self.rng.uniform(0.5, 6)
        if self.rng.random() < 0.6:
            mode, how = self.rng.choice(BY_REQUEST)
            self.counts[mode] += 1
            await asyncio.to_thread(lambda: e.fail(mode, **how))
            await asyncio.sleep(max(lasts, how.get("for_ms", 0) / 1000 + 0.2))
            await asyncio.to_thread(lambda: e.fail("none"))
            return
        how = self.rng.choice(BY_PROCESS)
        self.counts[how] += 1
        if how == "stop":
            e.sim.signal(signal.SIGSTOP)
            await asyncio.sleep(lasts)
            e.sim.signal(signal.SIGCONT)
            return
        if how == "kill":
            await asyncio.to_thread(e.kill)
        elif how == "term":
            e.sim.signal(signal.SIGTERM)
        else:
            await asyncio.to_thread(lambda: e.fail("die"))
        await asyncio.sleep(lasts)
        await asyncio.to_thread(e.start)

    async def leaving(self):
        """Clients that go away: in the middle of the request, before the answer, in the middle of it."""
        while time.monotonic() < self.end:
            await asyncio.sleep(self.rng.uniform(0.02, 0.2))
            self.counts["client that left"] += 1
            body = json.dumps(self.load.body(l.CHAT, True)).encode()
            data = l.posted(l.CHAT, body)
            try:
                reader, writer = await asyncio.open_connection(*self.rng.choice(self.fleet.addresses))
                cut = self.rng.choice([len(data) // 2, len(data), len(data)])
                writer.write(data[:cut])
                if cut == len(data) and self.rng.random() < 0.7:
                    try:
                        await asyncio.wait_for(reader.read(64), 2)
                    except asyncio.TimeoutError:
                        pass
                if self.rng.random() < 0.5:  # a reset, not an orderly end
                    writer.get_extra_info("socket").setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    writer.transport.abort()
                writer.close()
            except OSError:
                pass

    async def asking(self):
        while time.monotonic() < self.end:
            await self.load.run(1)
            self.take_results()

    def take_results(self):
        """Finished results are counted and dropped."""
        over = [r for r in self.load.results if r.end is not None]
        self.load.results[:] = [r for r in self.load.results if r.end is None]
        for r in over:
            self.counts["requests"] += 1
            self.failures[r.failure or "ok"] += 1

    async def watching(self):
        began = time.monotonic()
        while time.monotonic() < self.end:
            kb = [r.rss() // 1024 for r in self.fleet.routers]
            minute = (time.monotonic() - began) / 60 * self.o.speed
            self.memory.append((minute, kb))
            print("  minute %5.1f  RSS MiB %s  requests %d, ok %d" %
                  (minute, " ".join("%6.1f" % (k / 1024) for k in kb), self.counts["requests"], self.failures["ok"]),
                  flush=True)
            await asyncio.sleep(max(1.0, self.seconds / 20))

    # --- what is left ------------------------------------------------------------------------------

    @staticmethod
    def descriptors(router):
        return len(os.listdir("/proc/%d/fd" % router.pid))

    def left(self):
        """{what: how much} that should be nothing when all is quiet."""
        out = {}
        for i, r in enumerate(self.fleet.routers):
            m = r.metrics()
            for name, value in m.items():
                short = name[len("grapevine_"):].split("{")[0]
                less = 1 if short == "requests_open" else 0  # this scrape
                if short in LEFT and value > less:
                    out["r%d %s" % (i + 1, name)] = value
            if m["grapevine_body_bytes_held"] > 4096:
                out["r%d body_bytes_held" % (i + 1)] = m["grapevine_body_bytes_held"]
            if self.descriptors(r) > self.idle[i] + 2:
                out["r%d descriptors beyond %d" % (i + 1, self.idle[i])] = self.descriptors(r) - self.idle[i]
        return out

    async def run(self):
        await self.load.run(1)
        await self.load.finish()
        # Allowed leftovers: a few connections to each engine, which engines close after 5 s.
        self.idle = [self.descriptors(r) + 8 for r in self.fleet.routers]
        self.load.results.clear()
        self.seconds = self.o.minutes * 60 / self.o.speed
        self.end = time.monotonic() + self.seconds
        await asyncio.gather(self.asking(), self.faults(), self.faults(), self.leaving(), self.watching())
        await self.load.finish()
        self.take_results()
        for e in self.fleet.engines:
            if not e.sim.running():
                await asyncio.to_thread(e.start)
            await asyncio.to_thread(lambda: e.fail("none"))
        limit = time.monotonic() + 30
        while self.left() and time.monotonic() < limit:
            await asyncio.sleep(0.5)
        return self.verdict()

    def verdict(self):
        final = [r.rss() // 1024 for r in self.fleet.routers]
        quarter = next(kb for minute, kb in self.memory if minute >= self.o.minutes / 4)
        growth = [b - a for a, b in zip(quarter, final)]
        left = self.left()
        wrong = sum(self.failures[k] for k in ("mixed", "no token"))
        print("  faults: %s" % ", ".join("%s %d" % x for x in sorted(self.counts.items()) if x[0] != "requests"))
        print("  answers: %s" % ", ".join("%s %d" % x for x in self.failures.most_common()))
        print("  growth since the first quarter: %s KiB; left behind: %s; wrong answers: %d" %
              (" ".join(map(str, growth)), left or "nothing", wrong))
        return 1 if left or wrong or max(growth) > GROWTH_MAX_KB else 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--minutes", type=float, default=60, help="of the engines' clock")
    p.add_argument("--speed", type=int, default=10)
    p.add_argument("--rate", type=float, default=60, help="requests a real second")
    p.add_argument("--routers", type=int, default=3)
    p.add_argument("--seed", type=int, default=1)
    o = p.parse_args()
    soak = Soak(o)
    try:
        status = asyncio.run(soak.run())
    finally:
        soak.fleet.stop()
    print("flat, nothing left behind" if status == 0 else "FAILED")
    return status


if __name__ == "__main__":
    f.ends_well()
    sys.exit(main())
