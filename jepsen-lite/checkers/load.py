"""load: the routers' gauges of requests in flight, compared with the engines' journals. Pure.

Operations in the history (workloads/load.py writes them):

  load.stream  router                 a request of some seconds
  load.hold    router                 a request that stays open at rest, until the gauges were read
  load.gauges  router, round          ok: replicas {name: {own, others, by: {router: n}, tokens: [...]}}, without those
                                      that are all zero; round: a number for each time that all routers were read at
                                      rest, else null

Rules:

  negative  a gauge is below zero, or above all requests of the run: it went below zero and wrapped; or counts more
            tokens than requests can have
  dead      a router that died `gone_s` ago still has a share in another's count
  missing   a router counts fewer of its own than were under way there for clients that waited, all the time since
  their request, and no fault touched anything since
  stuck     a router counts more requests at an engine than were under way there for it; or tokens without a request
  stale     a router counts more for another router than were under way there for that one in the last `gone_s`
  sum       at a quiet moment at rest (no request began or ended at the engine for `settle_s`) the sum of all routers'
            own gauges differs from the engine's journal, or a router's count for another differs from the other's own
  blind     at a calm rest no router was read
  silent    at a calm rest a living router does not answer

A lying member (fault `member-lies`) may count anything while it lives; once it is dead, nothing.

A fault excuses everything it touches, until as long after it as it lasted, and at most `lost_s`: until then TCP may
still repeat lost packets. A calm rest needs no such excuse: there all routers counted nothing and agreed, and requests
since then met no fault; an engine that is still busy with an older request is skipped. Nothing excuses `negative`.
`dead` is excused at a router that was itself touched, as long again and AGREE_S."""

import bisect

from checkers.journal import addresses, runs
from checkers.latency import summary
from checkers.lives import Lives, unread
from checkers.naming import LIAR
from checkers.trouble import Trouble, touches
from history import Anomaly

LIMITS = {
    "gone_s": 3,     # docs/replication.md: load of a router after kill -9 gone from all others
    "settle_s": 0.5,  # news of loads goes around in milliseconds
    "lost_s": 32,    # the kernel gives up after 30 s (TCP_USER_TIMEOUT), and two
}
AGREE_S = 10  # until routers that a fault separated have found each other
TOKENS_MAX = 1000000  # one request's maximum
LATE_S = 0.5  # a request is booked before it is in the engine's journal


class Runs:
    """The requests of one engine, asked by time."""

    def __init__(self, runs):
        self.runs = sorted(runs, key=lambda r: r.t)
        self.begins = [r.t for r in self.runs]
        self.moves = sorted(self.begins + [r.end for r in self.runs if r.end is not None])
        self.endless = [r for r in self.runs if r.end is None]
        self.last_end = []  # the latest end of all up to here
        for r in self.runs:
            before = self.last_end[-1] if self.last_end else 0
            self.last_end.append(before if r.end is None else max(before, r.end))

    def during(self, t0, t1):
        out = [r for r in self.endless if r.t <= t1]
        at = bisect.bisect_right(self.begins, t1) - 1
        while at >= 0 and self.last_end[at] >= t0:
            r = self.runs[at]
            if r.end is not None and r.end >= t0:
                out.append(r)
            at -= 1
        return out

    def moved(self, t0, t1):
        return bisect.bisect_left(self.moves, t0) < bisect.bisect_right(self.moves, t1)


NOTHING = Runs([])


class Judge:
    def __init__(self, history):
        meta = history.meta
        self.history, self.trouble = history, Trouble(history)
        self.limits = {**LIMITS, **meta.get("limits", {})}
        self.routers = [r["name"] for r in meta.get("routers", [])]
        self.lives = Lives(history, self.routers + [LIAR])
        self.names = addresses(history)
        at, self.last = {}, {}
        for r in runs(history):
            at.setdefault(r.engine, []).append(r)
            self.last[r.op] = r
        self.at = {engine: Runs(some) for engine, some in at.items()}
        self.most = len(history.operations()) + sum(map(len, at.values()))
        self.unsettled = {}
        self.calm = [(begin, end) for _, begin, end, calm in history.rests() if calm]
        self.reads = [e for e in history.operations("load.gauges") if e.ended is not None and e.ended.type == "ok"]
        self.found = {}

    # --- what was under way

    def engine(self, replica):
        return self.names.get(replica.rpartition(":")[0], replica)

    def via(self, run):
        """The router that its client asked; None: unknown."""
        number = str(run.op or "").rpartition("-")[2]  # of an operation; most workloads write NAME-ID
        if not number.isdigit() or int(number) not in self.history.by_id:
            return None
        value = self.history.by_id[int(number)].value
        name = value.get("router") or value.get("at")
        return name if name in self.routers else None

    def under_way(self, engine, t0, t1, router=None):
        """True if a request was under way at some moment between the two, for this router as far as known."""
        return [r for r in self.at.get(engine, NOTHING).during(t0, t1)
                if router is None or self.via(r) in (None, router)]

    def quiet(self, engine, t0, t1):
        """True if no request began or ended there."""
        return not self.at.get(engine, NOTHING).moved(t0, t1)

    # --- what was disturbed

    def calm_since(self, t):
        """The beginning of the calm rest that contains t; None if there is none."""
        return next((begin for begin, end in self.calm if begin <= t <= end), None)

    def settled(self, machines, t):
        """True if the effects of faults on these machines and the ways between them are over at t."""
        return self.calm_since(t) is not None or self.long_past(machines, t)

    def long_past(self, machines, t):
        key = frozenset(machines)
        if key not in self.unsettled:
            self.unsettled[key] = self.troubled(key)
        spans = self.unsettled[key]
        at = bisect.bisect_right(spans, (t, float("inf"))) - 1
        return at < 0 or spans[at][1] <= t

    def troubled(self, machines):
        """[(from, to)], apart from each other: from the beginning of a fault until its aftermath is over."""
        gone_s, lost_s = self.limits["gone_s"], self.limits["lost_s"]
        spans = [(at, at, 0) for d in self.trouble.downs if d.process in machines for at in (d.begin, d.end) if at > 0]
        spans += [(begin, end, min(end - begin, lost_s)) for begin, end, v in self.trouble.faults
                  if touches(v, machines)]
        out = []
        for begin, end, after in sorted(spans):
            until = end + after + gone_s
            if out and begin <= out[-1][1]:
                # This fault begins in the aftermath of another: packets lost then are sent again later still.
                out[-1] = out[-1][0], max(out[-1][1], end + min(end - out[-1][0], lost_s) + gone_s if after else until)
            else:
                out.append((begin, until))
        return out

    # --- the rules

    def broken(self, rule, key, text, read):
        """Reports one anomaly for each router and engine, and counts the others."""
        self.found.setdefault((rule,) + key, []).append((text, read))

    def read(self, e):
        router, shown = e.value["router"], e.ended.value.get("replicas", {})
        for replica, g in shown.items():
            engine = self.engine(replica)
            by = dict(g.get("by", {}))
            lied = by.pop(LIAR, 0)
            if lied:
                self.dead(e, router, engine, LIAR, lied)
                g = dict(g, by=by, others=g["others"] - lied, tokens=[])
            numbers = [g.get("own", 0), g.get("others", 0), *by.values()]
            if any(n < 0 or n > self.most for n in numbers) or \
                    any(not 0 <= n <= TOKENS_MAX * max(1, *numbers) for n in g.get("tokens", ())):
                self.broken("negative", (router, engine), "%s says of %s: %s; there were %d requests in all" %
                            (router, engine, g, self.most), e)
                continue
            for other, n in by.items():
                self.dead(e, router, engine, other, n)
            if engine in self.names.values():  # a replica of another workload has no journal
                self.bounds(e, router, engine, g)

    def dead(self, e, router, engine, other, n):
        gone, limit = self.lives.dead_since(other, e.t), self.limits["gone_s"]
        if n <= 0 or gone is None or e.t <= gone + limit or not self.lives.all_along(router, e.t - limit, e.t):
            return
        if not self.held_up(router, gone, e.ended.t):
            self.broken("dead", (router, other), "%s counts %d requests of %s at %s, %.1f s after that one ended" %
                        (router, n, other, engine, e.t - gone), e)

    def held_up(self, router, t0, t1):
        """True if something kept the router from learning of a death at t0, as late as t1."""
        def at(v):
            return touches(v, [router]) or any(touches(v, (router, other)) for other in self.routers if v.get("links"))
        return any(begin <= t1 and end >= t0 and end + max(min(end - begin, self.limits["lost_s"]), AGREE_S) >= t1
                   for begin, end, v in self.trouble.faults if at(v)) or \
            any(d.process == router and d.touches(max(t0, t1 - AGREE_S), t1) for d in self.trouble.downs)

    def missing(self, e):
        """Requests that the router must count, and does not. A request counts from before its engine has it to the
        answer's end."""
        router, since, until = e.value["router"], e.t - self.limits["settle_s"], e.ended.t + LATE_S
        shown = self.shown(e)
        for engine, some in self.at.items():
            must = [r for r in some.during(since, until) if r.t <= since and (r.end is None or r.end > until)
                    and self.via(r) == router and self.waits(r, router, until)]
            if len(must) > shown.get(engine, 0):
                self.broken("missing", (router, engine), "%s counts %d requests of its own at %s, where %d were under way "
                            "for it: %s" % (router, shown.get(engine, 0), engine, len(must), must), e)

    def shown(self, e):
        out = {}
        for replica, g in e.ended.value.get("replicas", {}).items():
            out[self.engine(replica)] = out.get(self.engine(replica), 0) + g.get("own", 0)
        return out

    def waits(self, run, router, until):
        """True if its client waits until then for this engine, no other engine had it later, and no fault touched
        either since."""
        o = self.history.by_id[int(run.op.rpartition("-")[2])]
        if o.ended is None or o.ended.t <= until or self.last.get(run.op) is not run or run.method != "POST":
            return False
        key = frozenset((router, run.engine, o.process))
        if key not in self.unsettled:
            self.unsettled[key] = self.troubled(key)
        spans = self.unsettled[key]
        at = bisect.bisect_right(spans, (until, float("inf"))) - 1
        return (at < 0 or spans[at][1] <= run.t) and self.lives.all_along(router, o.t, until)

    def bounds(self, e, router, engine, g):
        own, late, gone_s = g.get("own", 0), e.ended.t + LATE_S, self.limits["gone_s"]
        if self.settled([router, engine], e.ended.t):
            most = len(self.under_way(engine, e.t - self.limits["settle_s"], late, router))
            if own > most:
                self.broken("stuck", (router, engine), "%s counts %d requests of its own at %s, where %d were under "
                            "way for it" % (router, own, engine, most), e)
            elif own == 0 and any(g.get("tokens", ())):
                self.broken("stuck", (router, engine), "%s counts tokens at %s (%s) and no request" %
                            (router, engine, g["tokens"]), e)
        for other, n in g.get("by", {}).items():
            if self.lives.all_along(other, e.t - gone_s, late) and self.settled([router, other, engine], e.ended.t):
                most = len(self.under_way(engine, e.t - gone_s, late, other))
                if n > most:
                    self.broken("stale", (router, other, engine), "%s counts %d requests of %s at %s, where %d were "
                                "under way for it" % (router, n, other, engine, most), e)

    def silent(self, e):
        if e.value.get("round") is not None and self.calm_since(e.t) and e.ended is not None and e.ended.type != "ok" and \
                self.lives.all_along(e.value["router"], e.t, e.ended.t) and \
                not self.trouble.ill(e.value["router"], e.t - AGREE_S, e.ended.t):
            self.broken("silent", (e.value["router"],), "%s does not say what it counts: %s" % (
                e.value["router"], e.ended.value), e)

    def rounds(self):
        """{number: {router: read}} of those that have an answer from each router that lives."""
        out = {}
        for e in self.reads:
            if e.value.get("round") is not None:
                out.setdefault(e.value["round"], {})[e.value["router"]] = e
        return {n: reads for n, reads in out.items()
                if set(reads) >= {r for r in self.routers if self.lives.alive(r, min(e.t for e in reads.values()))}}

    def sums(self):
        """Quiet [(round, engine, number under way)]; reports the wrong sums."""
        out = []
        for number, reads in self.rounds().items():
            t0, t1 = min(e.t for e in reads.values()), max(e.ended.t for e in reads.values())
            for engine in sorted(set(self.names.values())):
                if not self.quiet(engine, t0 - self.limits["settle_s"], t1 + LATE_S) or \
                        not self.settled([*reads, engine], t1):
                    continue
                open_ = self.under_way(engine, t0, t1)
                since = self.calm_since(t1)
                if since and any(r.t < since for r in open_) and not self.long_past([*reads, engine], t1):
                    continue
                out.append((number, engine, len(open_)))
                self.compare(engine, open_, reads)
        return out

    def gauge(self, read, engine):
        """A router's gauge of an engine, summed over all its replicas."""
        out = {"own": 0, "others": 0, "by": {}}
        for replica, g in read.ended.value.get("replicas", {}).items():
            if self.engine(replica) == engine:
                out["own"] += g.get("own", 0)
                out["others"] += g.get("others", 0)
                for other, n in g.get("by", {}).items():
                    out["by"][other] = out["by"].get(other, 0) + n
        return out

    def compare(self, engine, open_, reads):
        gauges = {router: self.gauge(e, engine) for router, e in reads.items()}
        own = {router: g["own"] for router, g in gauges.items()}
        some = next(iter(reads.values()))
        if sum(own.values()) != len(open_):
            self.broken("sum", (engine,), "at %s %d requests are under way, and routers count %s" %
                        (engine, len(open_), own), some)
        for router, g in gauges.items():
            others = {r: n for r, n in own.items() if r != router and n}
            counted = {r: n for r, n in g["by"].items() if n}
            if counted != others or g["others"] != sum(others.values()):
                self.broken("sum", (router, engine), "%s counts %s of others (%d in all) at %s, and they count %s" %
                            (router, counted, g["others"], engine, others), reads[router])

    def check(self):
        for e in self.reads:
            self.read(e)
            self.missing(e)
        for e in self.history.operations("load.gauges"):
            self.silent(e)
        self.sums()
        out = []
        for (rule, *_), found in self.found.items():
            text, read = found[0]
            more = "; seen %d times until %.1f s" % (len(found), found[-1][1].t) if len(found) > 1 else ""
            out.append(Anomaly(rule, text + more, [e.id for _, e in found[:20]], read.t))
        out += unread(self.history, self.routers, [
            e for e in self.history.operations("load.gauges") if e.value.get("round") is not None])
        return sorted(out, key=lambda a: a.t)


def check(history):
    return Judge(history).check()


def figures(history):
    judge = Judge(history)
    sums = judge.sums()
    gone = []
    for name, spans in judge.lives.spans.items():
        for end, until in zip([s[1] for s in spans], [s[0] for s in spans[1:]] + [float("inf")]):
            last = [e.t for e in judge.reads if end < e.t < until and e.value["router"] != name and
                    any(g.get("by", {}).get(name) for g in e.ended.value.get("replicas", {}).values())]
            if last:
                gone.append(max(last) - end)
    out = {"reads": len(judge.reads), "quiet moments": len(sums), "under way then": sum(n for _, _, n in sums)}
    if gone:
        out["share of a router that ended, last seen after"] = summary(gone)
    return out
