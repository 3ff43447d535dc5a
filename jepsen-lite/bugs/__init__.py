"""Known bugs and the rules that must catch each: the table of negative controls. Pure.

base/bug.h describes each bug. A control is the workload and the faults that provoke it, and the rules of which at least
one must be broken within `minutes`. Without the bug the same run must be clean."""

import os
import re

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Control:
    """`rules`: as "checker: rule"."""

    def __init__(self, bug, workload, nemesis, *rules, minutes=3, seconds=30, routers=3, engines=4, options=(),
                 engine_options=()):
        self.bug, self.workload, self.nemesis, self.rules = bug, workload, nemesis, rules
        self.minutes, self.seconds, self.routers, self.engines = minutes, seconds, routers, engines
        self.options, self.engine_options = options, engine_options

    def arguments(self, bug, seed):
        """Adds the arguments of jepsen-lite/run."""
        out = ["--bug", bug, "--workload", self.workload, "--nemesis", self.nemesis, "--seconds", str(self.seconds),
               "--routers", str(self.routers), "--engines", str(self.engines), "--seed", str(seed), "--habits", "none"]
        for o in self.options:
            out += ["--router-option", o]
        for o in self.engine_options:
            out += ["--engine-option", o]
        return out

    def caught_by(self, anomalies):
        """The first anomaly of a verdict by one of the control's rules, or None."""
        own = [a for a in anomalies if "%s: %s" % (a["checker"], a["rule"]) in self.rules]
        return min(own, key=lambda a: a["t"] or 0, default=None)


TABLE = [
    # sockets, files, clocks, signals, ciphers: no simulation has them
    # A probe that never ends freezes the engine's known state: the engine must be down when the probe begins.
    Control("PROBE_UNLIMITED", "service", "engine-choke", "rest: restless"),
    Control("DESCRIPTOR_LEAK", "service", "refuse", "resources: descriptors"),
    Control("BOOKING_RESET", "load", "engine-fail,kill-engine", "load: stuck", "load: sum"),
    # Less than all jumps but the least: half of those that a seed draws are of 4 s or less.
    Control("WALL_TIME", "service", "clock-frozen,clock-jump,clock-skew", "service: avoidable", "service: needless cut",
            options=("upstream-idle-timeout=3s",)),
    Control("ACCEPT_STOPPED", "service", "descriptors", "service: avoidable", "service: no answer", "rest: restless"),
    Control("DRAIN_IMPATIENT", "service", "term", "service: needless cut", "service: avoidable"),
    Control("READ_MIXED", "service", "none", "service: bytes", "service: stale answer", "service: malformed"),
    Control("UNSEALED", "confidentiality", "none", "confidentiality: clear"),
    Control("JOIN_ENDLESS", "membership", "gossip-join", "ready: unready"),
    Control("LOG_BY_LOOP", "membership,service", "disk-frozen", "membership: dead", "service: avoidable", "service: no answer"),
    Control("LOSS_UNCOUNTED", "service", "disk-frozen", "logs: lost"),
    Control("NAME_AT_A_TIME", "membership,service", "dns-silent", "membership: late", "rest: restless", "ready: unready"),
    # Names are announced 75 s before their time is over.
    Control("NAMES_REPEATED", "membership", "member-lies", "membership: lingers", seconds=110, minutes=4),
    # the data path
    Control("STALE_ANSWER", "service", "none", "service: stale answer", "service: one answer", "service: still running"),
    Control("RETRY_ANSWERED", "service", "engine-fail,kill-engine", "service: bytes", "service: malformed"),
    Control("BODY_LET_GO", "service", "engine-fail,kill-engine", "service: avoidable", "service: no answer"),
    Control("DEED_TWICE", "service", "engine-restart,kill-engine", "service: twice", engine_options=("deed-ms=3000",)),
    Control("GONE_KEPT", "service", "none", "service: still running"),
    Control("END_UNTOLD", "service", "none", "service: no answer", "service: needless cut"),
    Control("RARE_PIECE", "service", "none", "service: bytes", "service: needless cut"),
    Control("NEVER_RESUMED", "service", "none", "service: needless cut", "service: no answer",
            engine_options=("speed-up=20",)),
    Control("SLOW_READER_KEPT", "service", "none", "service: waited",
            options=("client-write-timeout=1s",), engine_options=("speed-up=20",)),
    Control("PIPELINE_LOST", "service", "none", "service: avoidable", "service: no answer"),
    Control("DRAIN_CUTS", "service", "term", "service: needless cut", "service: avoidable"),
    Control("LIMIT_UNARMED", "service", "engine-hang", "service: waited",
            options=("upstream-first-token-timeout=3s", "upstream-whole-answer-timeout=3s")),
    Control("CUT_AT_PAUSE", "service", "engine-pause,pause-engine", "service: needless cut"),
    Control("BOOKING_KEPT", "load", "none", "load: stuck", "load: sum"),
    # reports between routers
    Control("DEAD_LOAD", "load", "kill", "load: dead"),
    Control("SKIP_FENCE", "fences", "engine-restart", "fences: late", "fences: returned"),
    Control("NO_RECONCILE", "observations", "partition-halves", "observations: lost", "rest: restless"),
    Control("NO_REFUTE", "membership", "pause", "membership: dead", "membership: members"),
    Control("EPOCH_IGNORED", "membership,observations", "kill", "membership: digests", "observations: lost"),
    Control("REPLAY_ACCEPTED", "confidentiality", "none", "confidentiality: accepted", "confidentiality: changed"),
    Control("HELLO_REPLAYED", "confidentiality", "none", "confidentiality: answered", "confidentiality: accepted"),
]

# Bugs that real processes do not show within minutes, by reason. Only the simulation catches them.
REASONS = {
    "the nemesis `member-lies` uses it: other routers must bear it, and no rule catches it": ("LIES",),
    "anti-entropy repairs it within a second":
        ("NO_GAP_REPAIR", "GAP_SKIPPED", "RELAY_NOT_FORWARDED", "RARE_RELAY", "RARE_DELTA", "RARE_ENTRY",
         "SNAPSHOT_VECTOR_LATE"),
    "the next report corrects it a moment later": ("TIE_BY_ARRIVAL",),
    "operators here never change a replica twice at the same moment": ("DRAIN_LOST",),
    "routers read the wall clock at their start; here few start at a time with a wrong one, and the others outvote it":
        ("MEDIAN_IGNORED", "FUTURE_CLAMP"),
    "merging the same message twice changes nothing": ("MESSAGE_REPEATED",),
    "no call or answer shows it: an observation lives some seconds longer, a comparison costs more":
        ("RARE_GENERATION", "SKETCH_STALE"),
    "it needs hours: observations as old as the ttl, a full index, thousands of names": ("SKIP_FLOOR", "FLOOR_UNANNOUNCED",
                                                                               "NAME_RETURNS"),
    "no holder of the key sends nonsense here, and all builds share a version": ("QUARANTINE_ENDLESS",
                                                                                            "VERSION_SKIPPED"),
    "routers here have all others as seeds": ("STALE_ADDRESS",),
    "it needs more clients than one machine can run": ("CLIENTS_UNLIMITED",),
    "a control's engines are near, keep their addresses and send nothing unasked; the machine has free ports and files":
        ("STALE_BY_CLOCK", "SHORTAGE_CHARGED", "INTERIM_BUYS_TIME", "UNASKED_SERVED", "OLD_ADDRESS_USED"),
    "a control's engines have no habits, are asked by address, and reject or stall too rarely in three minutes": (
        "REJECT_COUNTS_AS_SPARE", "HOST_OF_CLIENT", "ERROR_EVENT_ENDS", "FINDING_KEPT", "REJECTS_REPORTED", "USAGE_SHOWN"),
}
UNSEEN = {bug: why for why, names in REASONS.items() for bug in names}


def known(*maps, path=os.path.join(TOP, "base", "bug.h")):
    """{bug: description} of base/bug.h, or only of these maps in it."""
    with open(path, encoding="utf-8") as f:
        text = re.sub(r"\\\n", " ", f.read())
    lines = re.findall(r"#define (BUG\w*_MAP)\(X\)(.*)", text)
    return dict(row for name, rows in lines if not maps or name in maps
                for row in re.findall(r'X\((\w+),\s*"([^"]*)"', rows))
