"""fences: an engine that restarts has lost its cache, and no router believes the old one for long, or ever again.

Operations in the history (workloads/fences.py writes them):

  fences.chat   router        ok: replica; a unique prompt. Its op is its id, as text
  fences.read   router, op    ok: beliefs {replica: tokens}, listed: [replicas that the router scored], before: the
                              time in s since which the answer equals the last one in the history; null: the first

The history has a router's answers where they changed, and at rest; `before` is the last time that one was seen
unchanged.

Rules:

  late      a router believes a lost cache, later than `fence_s` after the loss, or after the end of disturbances of the
            engine or the router meanwhile. A loss within two seconds of the engine's start does not count
  returned  a router that no longer believed it does so again; nothing excuses that"""

from checkers.caches import Caches
from checkers.latency import by_group, faults_between
from history import Anomaly

# Without figures for 3.5 s a router reads an engine's metrics itself (docs/runbook.md, what takes a replica out); a
# second for that, and one for the news to go around.
LIMITS = {"fence_s": 6}


class Answer:
    """One router's answer about one prompt and one engine; `until`: last time that the answer was seen."""

    def __init__(self, id, t, believes):
        self.id, self.t, self.until, self.believes = id, t, t, believes


class Judge:
    def __init__(self, history):
        self.history, self.caches = history, Caches(history)
        self.fence_s = {**LIMITS, **history.meta.get("limits", {})}["fence_s"]
        self.answers = {}  # (router, its life, op, engine) -> [Answer]
        self.last = {}     # (router, its life, op) -> the replicas of its last answer
        self.starts = {r: [e.t for e in history.events(r, "start")] for r in self.caches.routers}
        for e in history.operations("fences.read"):
            if e.ended is not None and e.ended.type == "ok":
                self.read(e)

    def read(self, e):
        router, op, value = e.value["router"], e.value["op"], e.ended.value
        life = sum(at <= e.t for at in self.starts.get(router, []))
        for answer in self.last.get((router, life, op), []):
            answer.until = max(answer.until, value.get("before") or 0)
        believed = {self.caches.engine(r) for r in value["beliefs"]}
        now = {engine: Answer(e.id, e.ended.t, engine in believed)
               for engine in {self.caches.engine(r) for r in value["listed"]}}
        self.last[router, life, op] = now.values()
        for engine, answer in now.items():
            self.answers.setdefault((router, life, op, engine), []).append(answer)

    def lost(self, op, engine, t):
        """The time at which the last cache with the prompt was lost. A prompt about to arrive was sent there, and
        counts."""
        arrivals = self.caches.arrivals(op, engine, t + self.fence_s)
        return self.caches.shown_after(engine, arrivals[-1], t) if arrivals else None

    def broken(self, router, op, engine, answers):
        """[(rule, loss, answer)]"""
        out, believed, knew = [], False, None
        for answer in answers:
            lost = self.lost(op, engine, answer.until)
            believed = believed or answer.believes
            if lost is None:
                continue
            if not answer.believes:
                # Before its first belief, the router may not have heard of the prompt yet.
                knew = lost if believed and answer.until >= lost else knew
            elif knew == lost:
                out.append(("returned", lost, answer))
            elif answer.until > self.caches.due(engine, router, lost, self.fence_s):
                out.append(("late", lost, answer))
        return out

    def check(self):
        found = {}
        for (router, _, op, engine), answers in self.answers.items():
            for rule, lost, answer in self.broken(router, op, engine, answers):
                found.setdefault((rule, router, engine, lost), []).append((answer, op))
        out = []
        for (rule, router, engine, lost), shown in found.items():
            answer, op = shown[0]
            what = "believes again in" if rule == "returned" else "still believes in"
            out.append(Anomaly(rule, "%s %s the cache that %s lost %.1f s before: %d prompts, such as %s" % (
                router, what, engine, answer.until - lost, len(shown), op), [a.id for a, _ in shown], answer.until))
        return sorted(out, key=lambda a: a.t)


def check(history):
    return Judge(history).check()


def figures(history):
    """From the loss, or the end of what disturbed it: how long a router was seen to believe in the old cache, and when
    it was seen not to. The truth lies between."""
    judge, faults = Judge(history), history.faults()
    believed, knew, losses = [], [], set()
    for (router, _, op, engine), answers in judge.answers.items():
        for before, after in zip(answers, answers[1:]):
            lost = judge.lost(op, engine, after.t)
            if lost is None or not before.believes or after.believes:
                continue
            losses.add((engine, lost))
            since = judge.caches.quiet_since(lost, (engine, router), 0)
            group = faults_between(faults, lost, after.t)
            believed.append((group, max(before.until - since, 0)))
            knew.append((group, max(after.t - since, 0)))
    return {"losses of a cache": sum(len(at) for at in judge.caches.lost.values()),
            "losses that routers had to learn": len(losses),
            "still believed, by fault": by_group(believed),
            "known to be lost, by fault": by_group(knew)}
