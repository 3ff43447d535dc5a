"""Facts of a history for a report, found in one pass: windows of time, counts, latencies, faults, lives."""

import bisect
import math
import re

WIDTHS = (0.5, 1, 2, 3, 5, 10, 15, 30, 60, 120, 300)
BINS_MAX = 1800  # windows of time in a picture: longer runs have wider ones
CELLS_MAX = 800  # cells with failures, over all workloads: each is a link
KINDS = ("ok", "fail", "info", "own")  # own: the client left, or a whole answer reported that its request is wrong


def kind_of(e):
    """The result of an operation, for people."""
    if e.ended is None:
        return "info"
    v = e.ended.value
    if e.ended.type != "ok" and isinstance(v, dict):
        status = v.get("status")
        wrong = v.get("finished") and isinstance(status, int) and 400 <= status < 500 and status not in (408, 429)
        if v.get("error") == "left" or wrong:
            return "own"
    return e.ended.type


def percentile(ordered, share):
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)] if ordered else None


class Bin:
    """Operations that ended in one window of time."""

    __slots__ = ("ok", "fail", "info", "own", "took")

    def __init__(self):
        self.ok = self.fail = self.info = self.own = 0
        self.took = []


class Fault:
    def __init__(self, number, began, ended, value):
        self.number, self.began, self.ended, self.value = number, began, ended, value
        self.name = str(value.get("fault", "fault"))
        hosts = value.get("hosts") or []
        self.hosts = [str(x) for x in hosts] if isinstance(hosts, list) else [str(hosts)]
        self.text = str(value.get("text") or "%s %s" % (self.name, ", ".join(self.hosts)))


class Workload:
    def __init__(self, name):
        self.name, self.bins, self.took = name, {}, []
        self.counts = dict.fromkeys(KINDS, 0)


class Facts:
    def __init__(self, history):
        self.history, self.meta = history, history.meta
        self.entries = history.entries
        self.end = max(history.end, 0.001)
        self.width = next((w for w in WIDTHS if self.end / w <= BINS_MAX), self.end / BINS_MAX)
        self.bins = max(1, math.ceil(self.end / self.width))
        self.faults = [Fault(i, *f) for i, f in enumerate(history.faults())]
        self.rests = history.rests()
        self.whys = {e.t: str(e.value["why"]) for e in history.events("lab", "rest") if e.value.get("why")}
        self.workloads, self.failed, self.operations = {}, [], 0
        self.lines, self.lives = [], {}
        for e in self.entries:
            self._take(e)
        self.line_times = [e.t for e in self.lines]
        self._widen()
        self._by_fault()

    def _take(self, e):
        if e.type == "invoke":
            self._operation(e)
        elif e.type == "event" and e.process not in ("lab", "nemesis"):
            self.lines.append(e)
            if e.f in ("start", "exit"):
                self.lives.setdefault(e.process, []).append((e.t, e.f))

    def _operation(self, e):
        self.operations += 1
        name = e.f.partition(".")[0]
        w = self.workloads.get(name)
        if w is None:
            w = self.workloads[name] = Workload(name)
        kind, t = kind_of(e), e.ended.t if e.ended is not None else self.end
        number = self.bin(t)
        b = w.bins.get(number)
        if b is None:
            b = w.bins[number] = Bin()
        setattr(b, kind, getattr(b, kind) + 1)
        w.counts[kind] += 1
        if kind == "ok":
            b.took.append(t - e.t)
            w.took.append(t - e.t)
        elif kind != "own":
            self.failed.append(e)

    def _widen(self):
        """Until few enough windows have failures."""
        while sum(1 for w in self.workloads.values() for b in w.bins.values() if b.fail + b.info) > CELLS_MAX:
            old = self.width
            self.width = next((w for w in WIDTHS if w > old and not w % old), old * 2)
            self.bins = max(1, math.ceil(self.end / self.width))
            for workload in self.workloads.values():
                bins, workload.bins = workload.bins, {}
                for i, b in bins.items():
                    into = workload.bins.setdefault(min(self.bins - 1, int((i + 0.5) * old / self.width)), Bin())
                    into.ok, into.fail, into.info = into.ok + b.ok, into.fail + b.fail, into.info + b.info
                    into.took += b.took

    def bin(self, t):
        return min(self.bins - 1, max(0, int(t / self.width)))

    def _by_fault(self):
        """Operations invoked during a fault, by the names of faults; "" is: during none, in no rest."""
        edges = sorted({f.began for f in self.faults} | {f.ended for f in self.faults})
        under = [set() for _ in range(len(edges) + 1)]
        for f in self.faults:
            for i in range(bisect.bisect_right(edges, f.began), bisect.bisect_left(edges, f.ended) + 1):
                under[i].add(f.name)
        self.by_fault = {}
        for e in self.entries:
            if e.type != "invoke":
                continue
            for name in under[bisect.bisect_right(edges, e.t)] or ("",):
                row = self.by_fault.setdefault(name, {"ok": 0, "fail": 0, "info": 0, "own": 0, "took": []})
                kind = kind_of(e)
                row[kind] += 1
                if kind == "ok":
                    row["took"].append(e.ended.t - e.t)

    def during(self, a, b):
        return [f for f in self.faults if f.began <= b and f.ended >= a]

    def lines_between(self, a, b):
        """Lines of logs and journals, by time."""
        return self.lines[bisect.bisect_left(self.line_times, a):bisect.bisect_right(self.line_times, b)]

    def names(self, key):
        """Names in meta: routers and engines are lists of names, or of objects with one."""
        listed = self.meta.get(key)
        if not isinstance(listed, list):
            return []
        return [str(x.get("name", "")) if isinstance(x, dict) else str(x) for x in listed]

    def machines(self):
        """In the order of the service; then those that only a fault or a life names."""
        seen = dict.fromkeys(self.names("routers") + self.names("engines"))
        seen.update(dict.fromkeys(sorted(self.lives, key=natural)))
        seen.update(dict.fromkeys(sorted({x for f in self.faults for x in f.hosts}, key=natural)))
        clients = set(self.names("clients"))
        return [name for name in seen if name not in clients]

    def up(self, name):
        """[(from, to)] in which its process ran; None if nothing tells of it."""
        lives = self.lives.get(name)
        if not lives:
            return None
        out, began = [], None
        for t, what in lives:
            if what == "start" and began is None:
                began = t
            elif what == "exit" and began is not None:
                out.append((began, t))
                began = None
        return out + ([(began, self.end)] if began is not None else [])


def natural(name):
    return [int(x) if x.isdigit() else x for x in re.split(r"(\d+)", str(name))]
