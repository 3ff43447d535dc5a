"""membership: living members, shared knowledge, and operators' changes. Pure.

Operations in the history (workloads/membership.py writes them):

  membership.change   router, replica, what: add, remove, drain, undrain; by: gvctl or admin. ok: the router accepted it
                      (already: nothing changed); fail: it refused; info: unknown
  membership.look     router, round. ok: members {name: state}, sessions {name: has one}, equal (null: not asked),
                      differ (field, and reason), replicas: names of all, drained: the draining ones, unsure: those
                      without a visible drain, because they are down
                      round: a number for each time that all routers are asked at rest, else null

A changed replica is the workload's own: no router has it in its settings, and one change of it ends before the next
begins. After a change with an unknown end, the workload takes another replica.

Rules:

  silent     at rest a living router does not answer
  blind      at a calm rest no router was asked
  members    at rest a router believes another alive that is not, or dead that lives, or has no session with it
  digests    at rest routers do not agree on their state
  replicas   at rest routers have other replicas than each other, or drain others; except for names of a lying name
             server a moment ago: a router keeps such a name for 30 s, and sends nothing there
  dead       a router believes another dead that it could have heard all along: both ran, and no fault touched either,
             or the way between them, in the `heard_s` before
  late       a replica was added, removed or drained, or already counted as such, and a router differs `told_s` after
             the change was accepted; `agree_s` after the end of disturbances of the router, or of the accepting one,
             meanwhile
  returned   a change that another one has replaced is in force again at a router that had the newer one
  refused    a replica is there although every addition of it was refused
  lingers    a router lists a name from a lying member, LIES_S after the member's death; except if a router started so
             late that it may name it once more

At rest a router may need a moment: of the rounds of a rest the best one counts.
A change may be lost with the router that accepted it, if that one ends before `told_s` have passed without a fault."""

import bisect

from checkers import logs
from checkers.latency import by_group, faults_between
from checkers.lives import Lives, unread
from checkers.naming import LIES_S, TRIED_S, host, lied
from checkers.trouble import Trouble, touches
from history import Anomaly

LIMITS = {
    "heard_s": 6,   # suspected after a second, dead after another; its own health may triple that
    "told_s": 1,    # docs/replication.md: news is pushed at once, and compared once a second
    "agree_s": 10,  # a seed is found within 5 s, the dead are called within 10 s; then they compare
}
NAMES_TOLD_S = 15  # the lie itself, and its time among others
WATCHED_S = 60  # after the last change a replica is checked for this time, and later at rest only
CLOCKS = ("clock-frozen", "clock-jump", "clock-rate", "clock-skew")  # wall clocks: no process dies of them


class Wish:
    def __init__(self, e):
        self.id, self.router, self.what, self.replica = e.id, e.value["router"], e.value["what"], e.value["replica"]
        self.t = e.t
        self.known = bool(e.ended and e.ended.type == "ok")
        self.end = e.ended.t if e.ended else float("inf")

    def sets(self, register):
        """The value that the change gives to `there` or `drained`; None: the change does not concern it."""
        if register == "there":
            return {"add": True, "remove": False}.get(self.what)
        return {"drain": True, "undrain": False, "add": False}.get(self.what)


class Judge:
    def __init__(self, history):
        meta = history.meta
        self.history, self.trouble, self.faults = history, Trouble(history), history.faults()
        self.limits = {**LIMITS, **meta.get("limits", {})}
        self.routers = [r["name"] for r in meta.get("routers", [])]
        self.lives = Lives(history, self.routers)
        self.looks = [e for e in history.operations("membership.look")]
        self.wishes, self.sayings = {}, []
        self.changes = history.operations("membership.change")
        for e in self.changes:
            if e.ended is not None and e.ended.type == "ok" and e.ended.value.get("already"):
                self.sayings.append(e)
            elif e.ended is None or e.ended.type != "fail":
                self.wishes.setdefault(e.value["replica"], []).append(Wish(e))
        self.anomalies = []

    def broken(self, rule, text, ids, t):
        self.anomalies.append(Anomaly(rule, text, ids, t))

    # --- at rest

    def rounds(self, t0, t1):
        out = {}
        for e in self.looks:
            if t0 <= e.t <= t1 and e.value.get("round") is not None:
                out.setdefault(e.value["round"], {})[e.value["router"]] = e
        return [out[n] for n in sorted(out)]

    def at_rest(self):
        for _, begin, end, _ in self.history.rests():
            rounds = self.rounds(begin, end)
            if not rounds:
                continue
            wrong = [self.wrong_in(looks) for looks in rounds]
            for rule in ("silent", "members", "digests", "replicas"):
                if all(rule in w for w in wrong):
                    text, ids = wrong[-1][rule]
                    last = next(iter(rounds[-1].values()))
                    self.broken(rule, "%s (in each of %d rounds, %.1f s from the first to the last)" % (
                        text, len(rounds), last.t - next(iter(rounds[0].values())).t), ids, last.t)

    def wrong_in(self, looks):
        """{rule: (text, ids)} of one round."""
        out = {}
        t = min(e.t for e in looks.values())
        living = [r for r in self.routers if self.lives.alive(r, t)]
        told = {r: looks[r].ended.value for r in living
                if r in looks and looks[r].ended is not None and looks[r].ended.type == "ok"}
        silent = sorted(set(living) - set(told))
        if silent:
            out["silent"] = "%s run, and do not answer" % ", ".join(silent), [looks[r].id for r in silent if r in looks]
        for router, v in told.items():
            wrong = self.wrong_members(router, v, living)
            if wrong:
                out.setdefault("members", ("%s: %s" % (router, wrong), [looks[router].id]))
            if v.get("equal") is False:
                out.setdefault("digests", ("%s: %s" % (router, v.get("differ") or "not equal"), [looks[router].id]))
        self.differ(looks, told, out)
        return out

    @staticmethod
    def wrong_members(router, v, living):
        alive = {name for name, state in v["members"].items() if state == "alive"}
        wrong = ["%s is %s" % (name, v["members"].get(name, "not listed")) for name in sorted(set(living) - alive)]
        wrong += ["%s is alive" % name for name in sorted(alive - set(living))]
        wrong += ["no session with %s" % name for name in living
                  if name != router and name in alive and not v.get("sessions", {}).get(name, True)]
        return ", ".join(wrong)

    def differ(self, looks, told, out):
        unsure = {name for v in told.values() for name in v.get("unsure", ())}
        t = min(e.t for e in looks.values())
        lies = lied(self.faults, t, t)
        for what in ("replicas", "drained"):
            seen = {}
            for router, v in told.items():
                names = {n for n in v.get(what, ()) if host(n) not in lies and (what != "drained" or n not in unsure)}
                seen.setdefault(tuple(sorted(names)), []).append(router)
            if len(seen) > 1:
                some, other = sorted(seen, key=lambda names: -len(seen[names]))[:2]
                text = "%s: %s at %s alone, %s at %s alone" % (
                    what, sorted(set(some) - set(other)), ", ".join(seen[some]),
                    sorted(set(other) - set(some)), ", ".join(seen[other]))
                out.setdefault("replicas", (text, [looks[r].id for r in told]))

    # --- routers believed dead

    def deaths(self):
        for e in self.history.events(f="log"):
            other = e.value.get("member")
            if e.value.get("event") != "member_dead" or e.process not in self.routers or other not in self.routers:
                continue
            since = logs.written_since(self.faults, e.process, e.t)  # the disk of its log may have hung
            if self.undisturbed(e.process, other, since - self.limits["heard_s"], e.t,
                                lambda fault: fault.get("fault") not in CLOCKS):
                self.broken("dead", "%s holds %s for dead, which ran, and nothing was between them for %g s" %
                            (e.process, other, self.limits["heard_s"]), [], e.t)

    # --- operators' changes

    def undisturbed(self, a, b, t0, t1, excuse=lambda fault: True):
        """True if both ran, and no fault touched either or the way between them, from t0 to t1."""
        if not all(self.lives.all_along(r, t0, t1) for r in (a, b)):
            return False
        return not any(touches(v, (a, b)) for v in filter(excuse, self.trouble.during(t0, t1, harmless=True)))

    def from_(self, holder, router, since, t):
        """True if the router must know at t a fact that the holder knows since then."""
        if holder == router:
            return self.lives.all_along(router, since, t)
        told_s, agree_s = self.limits["told_s"], self.limits["agree_s"]
        if t >= since + told_s and self.undisturbed(holder, router, since - 0.1, t):
            return True
        return t >= since + agree_s and self.undisturbed(holder, router, t - agree_s, t)

    def must_know(self, wish, router, t):
        """True if the change, or a later one, must have reached the router: from the one that took it, or from another
        that knew of it before that one ended."""
        if not wish.known or t < wish.end:
            return False
        if self.lives.all_along(wish.router, wish.t, t) and self.from_(wish.router, router, wish.end, t):
            return True
        until = min((end for _, end in self.lives.spans[wish.router] if end >= wish.end), default=t)
        for holder in self.routers:
            if holder != wish.router and self.lives.all_along(holder, wish.end, t) and until < t and \
                    self.from_(wish.router, holder, wish.end, until - 0.001) and \
                    self.from_(holder, router, until, t):
                return True
        return False

    def possible(self, wishes, register, router, t0, t1):
        """{value: id of the wish that gives it} of what the router may say between the two; None: of no wish."""
        writes = [w for w in wishes if w.sets(register) is not None and w.t <= t1]
        out = {}
        for i, w in enumerate(writes):
            later = [x for x in writes[i + 1:] if w.end <= x.t and x.known]
            if not any(self.must_know(x, router, t0) and (x.router == w.router or self.must_know(w, x.router, x.t))
                       for x in later):
                out[w.sets(register)] = w.id
        if not any(self.must_know(w, router, t0) for w in writes):
            out.setdefault(False, None)
        return out

    def look(self, e, replica, wishes):
        """[(register, reported value, possible values)] of each wrong report."""
        v, t1 = e.ended.value, e.ended.t
        there = replica in v.get("replicas", ())
        out = []
        for register, said in (("there", there), ("drained", replica in v.get("drained", ()))):
            if register == "drained" and (not there or replica in v.get("unsure", ())):
                continue
            last = [w for w in wishes if w.sets(register) is not None and w.t <= t1]
            if last and last[-1].sets(register) == said:
                continue  # it may always be known
            may = self.possible(wishes, register, e.value["router"], e.t, t1)
            if said not in may:
                out.append((register, said, may))
        return out

    def wished(self):
        knew, found = {}, {}
        for e in self.looks:
            if e.ended is None or e.ended.type != "ok":
                continue
            for replica, wishes in self.wishes.items():
                if wishes[0].t > e.ended.t or (e.value.get("round") is None and e.t > wishes[-1].t + WATCHED_S):
                    continue
                wrong = self.look(e, replica, wishes)
                for register, said, may in wrong:
                    key = (e.value["router"], replica, register)
                    rule = "returned" if knew.get(key, set()) & set(may.values()) else "late"
                    found.setdefault((rule,) + key, []).append((e, said, may))
                if not wrong:
                    self.note(knew, e, replica, wishes)
        for (rule, router, replica, register), looks in found.items():
            e, said, may = looks[0]
            words = {("there", True): "there", ("there", False): "not there",
                     ("drained", True): "drained", ("drained", False): "not drained"}
            ids = sorted({i for i in may.values() if i is not None})
            text = "at %s replica %s is %s, %.1f s after it was wished otherwise, seen %d times until %.1f s" % (
                router, replica, words[register, said], e.t - self.wished_at(ids, e.t), len(looks), looks[-1][0].t)
            self.broken(rule, text, ids + [e.id for e, _, _ in looks[:10]], e.t)

    def said_already(self):
        """A router's answer that nothing changed must agree with an earlier change."""
        for e in self.sayings:
            wish, replica = Wish(e), e.value["replica"]
            for register in ("there",) if wish.what in ("add", "remove") else ("drained",):
                said = wish.sets(register)
                if said not in self.possible(self.wishes.get(replica, ()), register, wish.router, e.t, e.ended.t):
                    self.broken("late", "%s says that %s of %s is so already, and nobody wished it" % (
                        wish.router, wish.what, replica), [e.id], e.t)

    def refused(self):
        """Replicas with a refused addition must not be seen until another call adds them."""
        refused, taken = set(), {}
        for e in self.changes:
            if e.value["what"] == "add" and e.ended is not None and e.ended.type == "fail":
                refused.add(e.value["replica"])
            elif e.value["what"] == "add":
                taken.setdefault(e.value["replica"], e.t)
        for replica in sorted(refused):
            looks = [e for e in self.looks if e.ended is not None and e.ended.type == "ok"
                     and e.ended.t < taken.get(replica, float("inf")) and replica in e.ended.value.get("replicas", ())]
            if looks:
                self.broken("refused", "at %s replica %s is there, which was refused, seen %d times" % (
                    looks[0].value["router"], replica, len(looks)), [e.id for e in looks[:10]], looks[0].t)

    def lingers(self):
        told = [(begin, end, set(v["more"])) for begin, end, v in self.faults if v.get("fault") == "member-lies" and v.get("more")]
        starts = [s[0] for spans in self.lives.spans.values() for s in spans]
        seen = {}
        for e in self.looks if told else ():
            died = max((end for begin, end, _ in told if begin <= e.t), default=float("inf"))
            if e.t <= died + LIES_S or e.ended is None or e.ended.type != "ok" or \
                    any(died + LIES_S - TRIED_S - NAMES_TOLD_S <= s <= died + LIES_S for s in starts):
                continue
            left = [n for n in e.ended.value.get("replicas", ()) if any(host(n) in names for _, _, names in told)]
            if left:
                seen.setdefault(e.value["router"], []).append((e, left, e.t - died))
        for router, looks in seen.items():
            e, left, since = looks[0]
            self.broken("lingers", "at %s %d names that a member told that lied are there %.1f s after that one died, such as %s" % (
                router, len(left), since, left[0]), [e.id for e, *_ in looks[:10]], e.t)

    def wished_at(self, ids, default):
        ends = [self.history.by_id[i].ended.t for i in ids if self.history.by_id[i].ended]
        return max(ends) if ends else default

    def note(self, knew, e, replica, wishes):
        """Records the changes that the router has shown to know."""
        v = e.ended.value
        there = replica in v.get("replicas", ())
        said = {"there": there, "drained": replica in v.get("drained", ()) if there else None}
        for register, value in said.items():
            last = [w for w in wishes if w.sets(register) is not None and w.end <= e.t]
            if last and value == last[-1].sets(register):
                knew.setdefault((e.value["router"], replica, register), set()).add(last[-1].id)

    def check(self):
        self.at_rest()
        self.deaths()
        self.wished()
        self.said_already()
        self.refused()
        self.lingers()
        self.anomalies += unread(self.history, self.routers, [e for e in self.looks if e.value.get("round") is not None])
        return sorted(self.anomalies, key=lambda a: a.t)


def check(history):
    return Judge(history).check()


def first(looks, t0, t1, says):
    """The time of the first look between the two that says so; None: no look does."""
    for e in looks[bisect.bisect_left(looks, t0, key=lambda e: e.t):]:
        if e.t > t1:
            return None
        if says(e.ended.value):
            return e.ended.t
    return None


def figures(history):
    """Times until each other router showed a change, by the faults meanwhile; and times to agree."""
    judge = Judge(history)
    told, agreed, looks = [], [], {}
    for e in judge.looks:
        if e.ended and e.ended.type == "ok":
            looks.setdefault(e.value["router"], []).append(e)
    for replica, wishes in judge.wishes.items():
        for i, w in enumerate(wishes):
            until = wishes[i + 1].t if i + 1 < len(wishes) else history.end
            register = "there" if w.what in ("add", "remove") else "drained"
            for router in judge.routers:
                seen = first(looks.get(router, []), w.end, until, lambda v: w.sets(register) == (
                    replica in v["replicas" if register == "there" else "drained"]))
                if w.known and seen is not None and router != w.router:
                    told.append((faults_between(judge.trouble.faults, w.t, seen), seen - w.end))
    for _, begin, end, _ in history.rests():
        rounds = judge.rounds(begin, end)
        first_asked = min((e.t for e in rounds[0].values()), default=begin) if rounds else begin
        for asked in rounds:
            if not judge.wrong_in(asked):
                agreed.append((faults_between(judge.trouble.faults, begin - 30, begin),
                               max(e.ended.t for e in asked.values()) - first_asked))
                break
    return {"until a wish is seen at another": by_group(told), "until all agree at rest": by_group(agreed)}
