"""Known bugs, and who must catch each: the table of negative controls. Pure.

base/bug.h says what each bug does. A control is a workload and faults that provoke it, and the rules of its checker of
which one at least must be broken within `minutes`. Without the bug the same run must be clean."""

import os
import re

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Control:
    """`rules`: as "checker: rule"."""

    def __init__(self, bug, workload, nemesis, *rules, minutes=3, seconds=30, routers=3, engines=4, options=()):
        self.bug, self.workload, self.nemesis, self.rules = bug, workload, nemesis, rules
        self.minutes, self.seconds, self.routers, self.engines, self.options = minutes, seconds, routers, engines, options

    def arguments(self, bug, seed):
        """Of jepsen-lite/run."""
        out = ["--bug", bug, "--workload", self.workload, "--nemesis", self.nemesis, "--seconds", str(self.seconds),
               "--routers", str(self.routers), "--engines", str(self.engines), "--seed", str(seed)]
        for o in self.options:
            out += ["--router-option", o]
        return out

    def caught_by(self, anomalies):
        """The first anomaly of a verdict that is of its rules, or None."""
        own = [a for a in anomalies if "%s: %s" % (a["checker"], a["rule"]) in self.rules]
        return min(own, key=lambda a: a["t"] or 0, default=None)


TABLE = [
    # sockets, files, clocks, signals, ciphers: no simulation has them
    Control("CONNECT_UNLIMITED", "service", "black-hole", "service: avoidable", "service: no answer"),
    Control("BOOKING_RESET", "load", "engine-fail", "load: stuck", "load: sum"),
    Control("PAUSE_BLAMED", "membership", "pause", "membership: dead"),
    Control("WALL_TIME", "service", "clock-jump", "service: avoidable", "service: needless cut"),
    Control("ACCEPT_STOPPED", "service", "descriptors", "service: avoidable", "service: no answer"),
    Control("KEYS_ONCE", "membership", "rotate-keys,kill", "membership: members"),
    Control("DRAIN_IMPATIENT", "service", "term", "service: needless cut", "service: avoidable"),
    Control("READ_MIXED", "service", "none", "service: bytes", "service: stale answer", "service: malformed"),
    # the data path
    Control("STALE_ANSWER", "service", "none", "service: stale answer", "service: one answer", "service: still running"),
    Control("RETRY_ANSWERED", "service", "engine-fail", "service: bytes", "service: malformed"),
    Control("CUT_IS_WHOLE", "service", "engine-fail,kill-engine", "service: unfinished", "service: bytes"),
    Control("GONE_KEPT", "service", "none", "service: still running"),
    Control("DEED_TWICE", "service", "engine-fail,kill-engine", "service: twice"),
    Control("END_UNTOLD", "service", "none", "service: no answer", "service: needless cut"),
    Control("RARE_PIECE", "service", "none", "service: bytes", "service: needless cut"),
    Control("BOOKING_KEPT", "load", "none", "load: stuck", "load: sum"),
    Control("LIMIT_UNARMED", "service", "pause-engine,engine-hang", "service: avoidable", "service: no answer"),
    # what routers tell each other
    Control("DEAD_LOAD", "load", "kill", "load: dead"),
    Control("SKIP_FENCE", "fences", "engine-restart", "fences: late", "fences: returned"),
    Control("NO_RECONCILE", "observations", "partition-halves", "observations: lost"),
    Control("NO_REFUTE", "membership", "pause", "membership: dead", "membership: members"),
    Control("EPOCH_IGNORED", "membership", "kill", "membership: digests"),
    Control("MEDIAN_IGNORED", "observations", "clock-jump,clock-skew", "observations: lost"),
    Control("STALE_ADDRESS", "membership", "move-router", "membership: members"),
    Control("DRAIN_LOST", "membership", "none", "membership: replicas", "membership: late"),
]

UNSEEN = {}


def known(path=os.path.join(TOP, "base", "bug.h")):
    """{bug: what it does} of base/bug.h."""
    with open(path, encoding="utf-8") as f:
        text = re.sub(r"\\\n", " ", f.read())
    return dict(re.findall(r'X\((\w+),\s*"([^"]*)"', text))
