"""observations: the routers' beliefs about engines' caches, compared with the engines' journals.

Operations in the history (workloads/observations.py writes them):

  observations.chat   router              ok: replica; a unique prompt. Its op is its id, as text
  observations.learn  op, router          seen: {replica: [last asked in vain, first believed]}, in s; it ends when the
                                          router believes the prompt at the replica that answered, or the wait is over
  observations.read   router, ops         ok: beliefs {op: {replica: tokens}}, listed: [replicas that it scored]

Rules:

  invented  a prompt is believed to be somewhere before any client sent it
  phantom   a prompt is believed at an engine that it never reached. While the engine, or the router that sent it, is
            disturbed, it may have been sent there and lost on its way: a choice counts at once, until its ttl ends
  lost      at rest a router scores the engine that answered a prompt and believes that it has nothing of it. Excuses:
            the ttl, later content of the cache, a restart, knowledge that died with the only router that had it, and
            knowledge of an unready router about an engine that began less than NEW_S before (docs/jepsen-lite.md)
  tokens    a router believes MORE times as many tokens as its prompt has; or at rest, for a prompt that it must not
            have lost, MORE times fewer. It counts bytes, and engines count tokens
  misnamed  an answer names an engine that never had its prompt
  late      after partitions between routers healed, more than one in a hundred of the waits for knowledge from that
            time, and more than one in all, lasted longer than observation_s. A wait counts if only partitions were
            there from aftermath_s before the prompt on (or faults at other engines alone), no process ended, and the
            way between that router and the engine was well. A wait that is given up counts if it had already lasted
            longer
  silent    at rest a living router does not report its beliefs
  blind     at a calm rest no router was asked"""

from checkers.caches import Caches
from checkers.latency import by_group, faults_between, percentile
from checkers.lives import unread
from checkers.options import seconds
from history import Anomaly

LIMITS = {
    "ttl_s": 3600,            # docs/routing.md: ttl
    "generation_s": 8,        # its grain
    "cache_tokens": 400000,   # size of each engine; the older half of a full one may be gone
    "fence_s": 6,             # checkers/fences.py: until then a router may book a request on the cache that is gone
    "aftermath_s": 8,         # connections that a fault broke are still found broken
    "observation_s": 2,       # until a router knows what was taught during a partition that is over, p99
}


MORE = 4
NEW_S = 5.1  # clocks of engines and routers may differ by this much: the observation may be of the process before


def limits_of(history):
    told = {name + "_s": seconds(history.meta.get("options", {}).get(name, "")) for name in ("ttl", "generation")}
    return {**LIMITS, **{name: s for name, s in told.items() if s}, **history.meta.get("limits", {})}


class Taught:
    """A prompt: who sent it, and who answered."""

    def __init__(self, invoke, caches):
        self.id, self.t, self.router = invoke.id, invoke.t, invoke.value.get("router")
        end = invoke.ended
        self.end = end.t if end else float("inf")
        self.acknowledged = bool(end and end.type == "ok")
        self.engine = caches.engine(end.value["replica"]) if end and end.value.get("replica") else None


class Judge:
    def __init__(self, history):
        self.history, self.caches, self.limits = history, Caches(history), limits_of(history)
        self.taught = {str(e.id): Taught(e, self.caches) for e in history.operations("observations.chat")}
        self.exits = {}
        for e in history.events(f="exit"):
            self.exits.setdefault(e.process, []).append(e.t)
        # A process that begins or ends. The first start of all is none.
        self.changes = [e.t for e in history.events() if e.f == "exit" or (e.f == "start" and e.value.get("life", 1) > 1)]
        self.known = {}  # op -> [(when, router)] that believed it of the engine that answered
        self.shown = {}  # (rule, router, engine) -> [(text, ids, t)]

    def found(self, rule, router, engine, text, ids, t):
        self.shown.setdefault((rule, router, engine), []).append((text, ids, t))

    # --- what was ever believed

    def belief(self, op, engine, t, router, id):
        taught = self.taught.get(op)
        if taught is None or t < taught.t:
            self.found("invented", router, engine, "%s believes that %s holds %s, which nobody had sent" %
                       (router, engine, op), [id], t)
            return
        if engine == taught.engine:
            self.known.setdefault(op, []).append((t, router))
        if not self.caches.has_journal(engine):
            return  # a replica of the workload membership: a choice counts until the engine denies the model
        if self.caches.arrivals(op, engine) and not self.caches.never_held(op, engine, t):
            return
        end = min(taught.end, t) + self.limits["aftermath_s"]
        old = t > min(taught.end, t) + self.limits["ttl_s"] + 2 * self.limits["generation_s"]
        if old or not self.caches.disturbed(taught.t - self.limits["aftermath_s"], end, (engine, taught.router)):
            self.found("phantom", router, engine, "%s believes that %s holds %s, which never came there" %
                       (router, engine, op), [taught.id, id], t)

    def learned(self, e):
        if e.ended is None:
            return
        for replica, (_, first) in e.ended.value.get("seen", {}).items():
            self.belief(e.value["op"], self.caches.engine(replica), first, e.value["router"], e.id)

    def read(self, e):
        for op, replicas in e.ended.value["beliefs"].items():
            for replica, tokens in replicas.items():
                engine, most = self.caches.engine(replica), self.caches.tokens.get(op, 0) * MORE
                self.belief(op, engine, e.ended.t, e.value["router"], e.id)
                if 0 < most < tokens:
                    self.found("tokens", e.value["router"], engine, "%s believes that %s holds %d tokens of %s, which has %d" %
                               (e.value["router"], engine, tokens, op, most // MORE), [e.id], e.ended.t)

    # --- what is believed at rest

    def read_at_rest(self, e, end):
        router = e.value["router"]
        if e.ended is None or e.ended.type != "ok":
            self.found("silent", router, None, "%s does not say what it believes" % router, [e.id], e.t)
            return
        listed = {self.caches.engine(r) for r in e.ended.value["listed"]}
        for op in e.value["ops"]:
            taught = self.taught.get(op)
            believed = {}
            for r, tokens in e.ended.value["beliefs"].get(op, {}).items():
                believed[self.caches.engine(r)] = believed.get(self.caches.engine(r), 0) + tokens
            if taught and taught.acknowledged and taught.engine in listed:
                self.kept(op, taught, router, e, end, believed.get(taught.engine, 0))

    def kept(self, op, taught, router, e, end, tokens):
        arrivals, least = self.caches.arrivals(op, taught.engine, e.t), self.caches.tokens.get(op, 0) / MORE
        if tokens > 0 and tokens >= least or not arrivals or self.may_be_gone(op, taught, arrivals[-1], end):
            return
        if tokens > 0:
            self.found("tokens", router, taught.engine, "%s believes that %s holds %d tokens of %s, which has %d" %
                       (router, taught.engine, tokens, op, least * MORE), [taught.id, e.id], e.t)
        else:
            self.found("lost", router, taught.engine, "%s does not believe that %s holds %s, which it has answered" %
                       (router, taught.engine, op), [taught.id, e.id], e.t)

    def named(self):
        for op, taught in self.taught.items():
            if taught.acknowledged and self.caches.has_journal(taught.engine) and not self.caches.arrivals(op, taught.engine):
                self.found("misnamed", taught.router, taught.engine, "%s says that %s answered %s, which never came there" %
                           (taught.router, taught.engine, op), [taught.id], taught.end)

    def may_be_gone(self, op, taught, arrived, t):
        limits, engine = self.limits, taught.engine
        if t - arrived > limits["ttl_s"] - 2 * limits["generation_s"]:
            return True
        if self.caches.used_between(engine, arrived, t) > limits["cache_tokens"] / 2:
            return True
        if any(lost <= t and arrived <= self.caches.due(engine, taught.router, lost, limits["fence_s"])
               for lost in self.caches.lost.get(engine, [])):
            return True
        if self.caches.slept(engine, arrived, t, limits["fence_s"]):
            return True
        return self.died_with_its_router(op, taught, arrived, t) or self.before_it_knew(taught, arrived)

    def before_it_knew(self, taught, arrived):
        """True if its router did not know yet that the engine had begun a moment ago."""
        def last(process, f):
            return max((e.t for e in self.history.events(process, f) if e.t <= arrived), default=0)
        unready = self.history.meta.get("watched") and last(taught.router, "ready") < last(taught.router, "start")
        return bool(unready) and arrived - last(taught.engine, "begin") < NEW_S

    def died_with_its_router(self, op, taught, arrived, t):
        """True if its router ended before any surviving router was seen to know."""
        def lives(router, since):
            return not any(since <= at <= t for at in self.exits.get(router, []))
        if lives(taught.router, arrived):
            return False
        known = self.known.get(op, [])
        return not any(at <= t and router != taught.router and lives(router, at) for at, router in known)

    def judge(self):
        reads = self.history.operations("observations.read")
        for e in self.history.operations("observations.learn"):
            self.learned(e)
        for e in reads:
            if e.ended is not None and e.ended.type == "ok":
                self.read(e)
        for _, begin, end, calm in self.history.rests():
            for e in reads:
                if calm and begin <= e.t <= end:
                    self.read_at_rest(e, end)
        self.named()
        self.judge_healing()
        found = [self.anomaly(rule, *shown) for (rule, _, _), shown in self.shown.items()]
        return sorted(found + unread(self.history, self.caches.routers, reads), key=lambda a: a.t)

    # --- after partitions

    def healing(self):
        """[(seconds, id, t)]: of each wait that counts, how long after the last partition it ended."""
        faults, out = self.history.faults(), []
        for e in self.history.operations("observations.learn"):
            taught = self.taught.get(e.value["op"])
            if e.ended is None or taught is None or not taught.acknowledged:
                continue
            wait = Learned(e, taught, self.caches)
            until = wait.known if wait.known is not None else e.ended.t
            near = [f for f in faults if f[0] <= until and f[1] >= wait.since - self.limits["aftermath_s"]
                    and not self.elsewhere(f[2], taught.engine)]
            heal = healed(near, wait.since, until)
            if heal and self.parted_only([v for _, _, v in near], {e.value["router"], taught.engine}) and \
                    not any(wait.since - self.limits["aftermath_s"] <= t <= until for t in self.changes):
                seconds = until - heal[1]
                if wait.known is not None or seconds > self.limits["observation_s"]:
                    out.append((seconds, e.id, until))
        return out

    def elsewhere(self, fault, engine):
        """True if the fault is at other engines only: no router is wiser or slower for it."""
        machines = {m for link in fault.get("links") or () for m in link} or set(fault.get("hosts", ()))
        return bool(machines) and machines <= set(self.caches.names.values()) - {engine}

    @staticmethod
    def parted_only(faults, pair):
        """True if all are partitions, and none of them is between these two."""
        return all(v.get("fault", "").startswith("partition") for v in faults) and \
            not any(pair <= set(link) for v in faults for link in v.get("links") or ())

    def judge_healing(self):
        waits, limit = self.healing(), self.limits["observation_s"]
        late = [w for w in waits if w[0] > limit]
        if len(late) <= max(1, len(waits) / 100):  # one late wait may be due to a busy machine
            return
        p99 = percentile([s for s, _, _ in waits], 0.99)
        self.found("late", None, None, "%.1f s, p99 of %d, from the end of a partition until a router knew what was taught "
                   "meanwhile; %g s are allowed, %d took longer" % (p99, len(waits), limit, len(late)),
                   [id for _, id, _ in late], min(t for _, _, t in late))

    @staticmethod
    def anomaly(rule, *shown):
        text, _, t = shown[0]
        more = " (and %d more like it)" % (len(shown) - 1) if len(shown) > 1 else ""
        return Anomaly(rule, text + more, [id for _, ids, _ in shown for id in ids], t)


def check(history):
    return Judge(history).judge()


# --- for the report ---------------------------------------------------------------------------------


class Learned:
    """The time that one router took to believe one prompt at the engine that answered."""

    def __init__(self, e, taught, caches):
        seen = {caches.engine(r): times for r, times in (e.ended.value if e.ended else {}).get("seen", {}).items()}
        arrivals = caches.arrivals(e.value["op"], taught.engine) if taught else []
        self.known = seen[taught.engine][1] if taught and taught.engine in seen else None
        self.since = arrivals[-1] if arrivals else e.t


def healed(faults, since, known):
    """(fault, end) of the fault that delayed the knowledge: the last one that ended before, if none was there after
    that."""
    over = [(end, begin, value) for begin, end, value in faults if begin <= known and end > since]
    if not over or any(end >= known for end, _, _ in over):
        return None
    end, _, value = max(over, key=lambda o: o[0])
    return value.get("fault", "?"), end


def figures(history):
    judge = Judge(history)
    faults, waits = history.faults(), judge.healing()
    learned = [Learned(e, judge.taught.get(e.value["op"]), judge.caches)
               for e in history.operations("observations.learn")]
    known = [x for x in learned if x.known is not None]
    until, after = [], []
    for x in known:
        until.append((faults_between(faults, x.since, x.known), max(x.known - x.since, 0)))
        heal = healed(faults, x.since, x.known)
        if heal:
            after.append((heal[0], x.known - heal[1]))
    return {
        "prompts": len(judge.taught),
        "acknowledged": sum(t.acknowledged for t in judge.taught.values()),
        "waits for a router to know": len(learned),
        "given up": len(learned) - len(known),
        "waits after partitions alone": len(waits),
        "... p99, s": round(percentile([s for s, _, _ in waits], 0.99), 3) if waits else None,
        "until a router knows, by fault": by_group(until),
        "until a router knows after a fault is over": by_group(after),
    }
