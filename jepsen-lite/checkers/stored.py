"""Every router finds the answers that engines keep, and sessions keep their replica. Pure.

The maker of an id is the engine with the answer that named it in its journal; a process's stored answers end with it.

    lost        a router answered 404 for an id with a maker that lives and was within reach
    avoidable   a request for such an id failed, and its maker was well and within reach; or the answer called it wrong,
                and its maker did not; or a request without an id failed, and checkers/service.py has no excuse
    another     an answer to an id came whole, and not from its maker
    changed     an answer that was read differs from the one that was made, or no engine sent an answer that came whole
    twice       a cancel, which is a deed, ran twice
    session     two routers at rest would send a session to different replicas; or, for clients, a session moved while
                all was well everywhere for CALM_S. Both with the policy `session` alone. Or a router at rest does not
                use that policy, although it is configured

A 404 from the maker itself is not the router's: an answer that is still queued cannot be continued. Other excuses are
those of checkers/service.py: the way to the router, START_S longer; and a fault at the maker, or on the way from the
router to it, WELL_S longer. Another engine's trouble excuses a failure (not a 404) while it lasts and WELL_S longer: a
router that does not know the maker asks one replica after the other."""

from checkers.journal import engines
from checkers.service import START_S, WELL_S, Service, failed, left, told, told_off, what, whole
from checkers.trouble import Trouble
from history import Anomaly

CALM_S = 35.0    # the longest back-off of a replica, and five
KEPT_MAX = 900   # ids of an engine since this one was made: it keeps 1,000


class Answer:
    """One that an engine keeps."""

    def __init__(self, operation, run):
        self.op, self.t, self.engine, self.life = operation, operation.ended.t, run.engine, run.life
        self.gone = None    # when the maker's process ended
        self.output = None  # at the first time that it was over


class Stored:
    def __init__(self, history):
        self.history, self.trouble = history, Trouble(history)
        self.service = Service(history, "stored")
        self.runs, self.engines = self.service.runs, engines(history)
        self.kept, self.made = {}, {e: [] for e in self.engines}
        self.ends = {e: [x.t for x in history.entries if x.type == "event" and x.process == e
                         and x.f in ("start", "begin", "exit", "restart")] for e in self.engines}
        self.anomalies, self.excused, self.asked = [], {}, 0

    def broken(self, rule, o, text):
        self.anomalies.append(Anomaly(rule, "%s: %s" % (told(o), text), [o.id], o.t))

    def check(self):
        operations = [o for o in self.history.operations("stored.") if o.ended is not None]
        for o in operations:
            self.learn(o)
        for o in operations:
            if o.f != "stored.choose":
                self.sent(o, o.ended.value)
            if o.f in ("stored.read", "stored.continue", "stored.cancel"):
                self.judge(o, o.ended.value)
            elif o.f in ("stored.make", "stored.session"):
                self.plain(o, o.ended.value)
        self.sessions(operations)
        self.service.rejections()
        return self.anomalies + self.service.anomalies

    def learn(self, o):
        """Records the maker."""
        v = o.ended.value
        if o.f not in ("stored.make", "stored.continue") or not whole(v) or not v.get("id"):
            return
        posts = [r for r in self.runs.get(o.id, []) if r.method == "POST" and r.how == "whole"]
        for r in posts:
            if r.hash == v["hash"] or len(posts) == 1:
                a = self.kept[v["id"]] = Answer(o, r)
                a.gone = next((t for t in self.ends[r.engine] if t > r.t), None)
                a.output = v.get("output") if v.get("state") in ("completed", "incomplete") else None
                self.made[r.engine].append(a.t)

    def mine(self, o):
        return [r for r in self.runs.get(o.id, []) if r.path == o.value.get("path")]

    def sent(self, o, v):
        """A whole answer is one that an engine sent so. A killed engine may not have written that in its journal."""
        mine = self.mine(o)
        if not whole(v) or any(r.how == "whole" and r.hash == v["hash"] for r in mine):
            return
        if not any(r.how == "died" and r.end > o.ended.t - 1 or r.how is None and self.history.end < o.ended.t + 1
                   for r in mine):
            self.broken("changed", o, "no engine sent the answer so: %s" % (mine or "none had the request"))

    def plain(self, o, v):
        """A request that any engine can answer."""
        if told_off(v):
            why = "rejects" if self.service.rejected(o, v) else None
        else:
            why = self.service.excuse(o, v)
        if why is None and (failed(v) or told_off(v)):
            self.broken("avoidable", o, "%s after %.1f s; %s" % (
                what(v), o.ended.t - o.t, self.mine(o) or "no engine had it"))
        elif not whole(v) and not left(v):
            self.excused[why] = self.excused.get(why, 0) + 1

    def judge(self, o, v):
        a = self.kept.get(o.value.get("of"))
        if a is None:
            return  # the process was killed before it reported the maker
        self.asked += 1
        mine = self.mine(o)
        if o.f == "stored.cancel" and len([r for r in mine if r.method == "POST"]) > 1:
            self.broken("twice", o, "a cancel ran %d times: %s" % (len(mine), mine))
        if whole(v):
            self.same(o, v, a, mine)
            return
        if left(v):
            return
        missing = told_off(v) and v["status"] == 404
        itself = told_off(v) and any(r.engine == a.engine and r.status == v["status"] for r in mine)
        why = "itself" if itself else None if told_off(v) and not missing else self.excuse(o, a, missing)
        if why is not None:
            self.excused[why] = self.excused.get(why, 0) + 1
        elif missing:
            self.broken("lost", o, "%s made %s %.1f s before and lives, and the answer is 404" % (
                a.engine, o.value["of"], o.t - a.t))
        else:
            self.broken("avoidable", o, "%s made it and was well: %s after %.1f s; %s" % (
                a.engine, what(v), o.ended.t - o.t, mine or "no engine had it"))

    def same(self, o, v, a, mine):
        gave = [r for r in mine if r.how == "whole" and r.hash == v["hash"]]
        if gave and not any(r.engine == a.engine for r in gave):
            self.broken("another", o, "%s made it, %s answered" % (a.engine, gave[0].engine))
        if o.f == "stored.read" and v.get("state") in ("completed", "incomplete"):
            if a.output is not None and v.get("output") != a.output:
                self.broken("changed", o, "%s is not what was made or read before" % o.value["of"])
            a.output = v.get("output")

    def excuse(self, o, a, missing):
        """Its name, or None."""
        t, router, t0, t1 = self.trouble, o.value.get("at"), o.t, o.ended.t
        if t.way([o.process, router], t0 - START_S, t1):
            return "way"
        if a.gone is not None and a.gone < t1:
            return "gone"
        if sum(made > a.t for made in self.made[a.engine]) > KEPT_MAX:
            return "old"
        if t.ill(a.engine, t0 - WELL_S, t1) or t.cut(router, a.engine, t0 - WELL_S, t1):
            return "maker"
        if not missing and any(t.ill(e, t0 - WELL_S, t1) or t.cut(router, e, t0 - WELL_S, t1) for e in self.engines):
            return "others"
        return None

    def sessions(self, operations):
        told_to = self.history.meta.get("options", {}).get("policy") == "session"
        rests = [(begin, end) for _, begin, end, calm in self.history.rests() if calm]
        for begin, end in rests:
            chosen = {}
            for o in operations:
                v = o.ended.value
                if o.f != "stored.choose" or not begin <= o.t <= end:
                    continue
                if told_to and v.get("policy", "session") != "session":
                    self.broken("session", o, "its policy is %s, and it was told another" % v["policy"])
                elif v.get("policy") == "session" and v.get("replica"):
                    chosen.setdefault(o.value["key"], []).append((v["replica"], o))
            for key, seen in chosen.items():
                if len({replica for replica, _ in seen}) > 1:
                    self.anomalies.append(Anomaly("session", "%s at rest: %s" % (
                        key, ", ".join("%s of %s" % (replica, o.value["at"]) for replica, o in seen)),
                        [o.id for _, o in seen], seen[0][1].t))
        if told_to:
            self.moved(operations)

    def moved(self, operations):
        last = {}
        for o in operations:
            mine = [r for r in self.runs.get(o.id, []) if r.how == "whole"]
            if o.f != "stored.session" or not whole(o.ended.value) or not mine:
                continue
            before = last.get(o.value["key"])
            last[o.value["key"]] = (o, mine[-1].engine)
            moved = before and before[1] != mine[-1].engine
            if moved and not self.trouble.anything(before[0].t - CALM_S, o.ended.t):
                self.broken("session", o, "%s moved from %s to %s" % (o.value["key"], before[1], mine[-1].engine))


def check(history):
    return Stored(history).check()


def figures(history):
    s = Stored(history)
    s.check()
    return {"kept": len(s.kept), "asked": s.asked, "excused": dict(sorted(s.excused.items()))}
