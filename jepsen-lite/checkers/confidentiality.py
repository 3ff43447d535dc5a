"""confidentiality: knowledge of an observer of the packets between routers, and power of an intruder. Pure.

In the history (workloads/confidentiality.py writes it):

  event confidentiality.searched   packets, bytes: captured since the last search; needles {kind: how many};
                                   hits: [{kind, needle, from, to, at}]
  event confidentiality.control    found, sought: {kind: how many}: the same search in places that contain needles: a
                                   client's request (prompt) and the memory of a router (hash, address)
  confidentiality.inject           to, how: replayed, altered, random; by: intruder (from its own address), spoofed
                                   (from that of the router that sent it first), wire (the packet itself, once more).
                                   ok: sent, answers: [bytes of each]
  confidentiality.call             to, how. ok: sent (bytes), answer: bytes that came back on a TCP connection
  confidentiality.state            router, injection, moment: before, after. ok: state that an injection must not
                                   change: {name: value}, and refused: packets that the router refused so far

Rules:

  clear     a needle was found. Hashes have six bytes and occur anywhere by chance in some hours: two must be found, or
            one OFTEN times, between the same routers in one search
  answered  an intruder got an answer; except for the welcome, and no more, to a call's hello (gossip/call.h)
  changed   at a calm rest a router's state differed after an injection; except for values that age, in long runs
            (AGES), and names that sources dropped (naming.py). A newer time slice is no change
  silent    at a calm rest a living router does not answer after an injection
  accepted  at a calm rest a router refused fewer packets than were injected
  blind     nothing was captured for BLIND_S while two routers ran, or a control missed a present needle: the searches
            prove nothing"""

from checkers.lives import Lives
from checkers.naming import host, lately, lied
from history import Anomaly


def same(was, now, ttl):
    """For values kept by time slices, of which the newest is reported: a newer slice may have begun, and with its own
    `ttl` the last one may have ended."""
    if isinstance(was, dict) and isinstance(now, dict):
        if was and not now:
            return ttl
        return all(int(key) > int(old) or was.get(key) == now[key] for key in now for old in was)
    return was == now


# From this time on these change by themselves: requests after which an engine died are forgotten after ten minutes
# (crdt/limits.h); rows of the registry are named again, with the time, after four to six (its wishes are in `replicas`).
AGES = {"poison": 590, "registry": 230}

# A router that was silent for long is suspected; it then announces that it lives, under a new number.
MACHINE_S = 10

OFTEN = 10  # faults and the intruder repeat chance matches, but not so often

BLIND_S = 5  # routers say that they live once a second

WELCOME_BYTES = 50  # a length of two bytes, 48, and 48 bytes that only the hello's maker can open


def is_welcome(answer, how):
    """True for a welcome. Random bytes are no hello, so no welcome belongs to them."""
    return how != "random" and len(answer) == 2 * WELCOME_BYTES and answer.startswith("3000")


class Judge:
    def __init__(self, history):
        self.history = history
        self.routers = [r["name"] for r in history.meta.get("routers", [])]
        self.lives = Lives(history, self.routers)
        self.faults = history.faults()
        self.calm = [(begin, end) for _, begin, end, calm in history.rests() if calm]
        self.ttl = "ttl" in history.meta.get("options", {})
        self.anomalies = []

    def broken(self, rule, text, ids, t):
        self.anomalies.append(Anomaly(rule, text, ids, t))

    def searches(self):
        seen = set()
        last = since = 0
        for e in self.history.events(f="confidentiality.searched"):
            hashes = {}
            for hit in e.value["hits"]:
                if hit["kind"] == "hash":
                    hashes.setdefault((hit["from"], hit["to"]), []).append(hit["needle"])
            for hit in e.value["hits"]:
                found = hashes.get((hit["from"], hit["to"]), ())
                if hit["kind"] == "hash" and len(set(found)) == 1 and len(found) < OFTEN:
                    continue
                if (hit["kind"], hit["needle"]) not in seen:
                    seen.add((hit["kind"], hit["needle"]))
                    self.broken("clear", "%s %s stands in a packet from %s to %s, at byte %d" % (
                        hit["kind"], hit["needle"], hit["from"], hit["to"], hit["at"]), [], e.t)
            last = e.t
            if e.value["packets"] == 0 and sum(self.lives.all_along(r, since, e.t) for r in self.routers) > 1:
                if e.t < since + BLIND_S:
                    continue  # the next search reports it
                self.broken("blind", "nothing was captured since %.1f s, and routers ran" % since, [], e.t)
            since = e.t
        controls = self.history.events(f="confidentiality.control")
        if self.calm and last > 0 and not controls:
            self.broken("blind", "there was a rest, and no control of the search", [], last)
        for e in controls:
            missed = sorted(kind for kind in e.value["sought"] if not e.value["found"].get(kind))
            if missed:
                self.broken("blind", "the control finds no %s where there are some" % ", ".join(missed), [], e.t)

    def ended(self, f):
        return [e for e in self.history.operations("confidentiality." + f)
                if e.ended is not None and e.ended.type == "ok"]

    def answers(self):
        for e in self.ended("inject") + self.ended("call"):
            v = e.ended.value
            call = [v["answer"]] if v.get("answer") and not is_welcome(v["answer"], e.value["how"]) else []
            answers = v.get("answers") or call
            if answers:
                self.broken("answered", "%s answered what was %s (by %s), %d times: %s" % (
                    e.value["to"], e.value["how"], e.value.get("by", "call"), len(answers), answers[0]), [e.id], e.t)

    def states(self):
        """[(injection, router, before, after)] at calm rests, of a router that ran all along."""
        moments = {}
        for e in self.ended("state"):
            if any(begin <= e.t <= end for begin, end in self.calm):
                moments.setdefault((e.value["injection"], e.value["router"]), {})[e.value["moment"]] = e
        return [(injection, router, m["before"], m["after"]) for (injection, router), m in moments.items()
                if len(m) == 2 and self.lives.all_along(router, m["before"].t, m["after"].ended.t)
                and not self.stood_still(m["before"].t - MACHINE_S, m["after"].ended.t)]

    def silences(self):
        answered = {(e.value["injection"], e.value["router"]): e for e in self.ended("state") if e.value["moment"] == "before"}
        for e in self.history.operations("confidentiality.state"):
            before = answered.get((e.value["injection"], e.value["router"]))
            if e.value["moment"] != "after" or before is None or e.ended is None or e.ended.type == "ok":
                continue
            t0, t1 = before.t, e.ended.t
            if any(begin <= t0 and e.t <= end for begin, end in self.calm) and \
                    self.lives.all_along(e.value["router"], t0, t1) and not self.stood_still(t0 - MACHINE_S, t1):
                self.broken("silent", "%s does not answer after an injection: %s" % (
                    e.value["router"], e.ended.value), [before.id, e.id], e.t)

    def stood_still(self, t0, t1):
        return any(v["fault"] == "machine" and begin <= t1 and end >= t0 for begin, end, v in self.faults)

    def went(self, before, after):
        """Removes names that went or came by themselves from lists of replicas."""
        often, lies = lately(self.faults, before.t, after.t), lied(self.faults, before.t, after.t)
        was, now = ({r[0]: r for r in e.ended.value.get("replicas", [])} for e in (before, after))
        gone = {name for name in set(was) - set(now) if often and was[name][1] == "none"}
        come = {name for name in set(now) - set(was) if host(name) in lies and now[name][1] == "none"}
        return (sorted(r for name, r in was.items() if name not in gone),
                sorted(r for name, r in now.items() if name not in come), gone | come)

    def changes(self):
        injected = self.ended("inject")
        for injection, router, before, after in self.states():
            was, now = dict(before.ended.value), dict(after.ended.value)
            if "replicas" in was:
                was["replicas"], now["replicas"], moved = self.went(before, after)
                if moved:
                    was["registry"] = now.get("registry")
            ids = [before.id, after.id]
            for what in sorted((set(was) | set(now)) - {"refused"}):
                ages = after.t >= AGES.get(what, after.t + 1)
                if not ages and not same(was.get(what), now.get(what), self.ttl):
                    self.broken("changed", "%s of %s: %s before an injection, %s after it" % (
                        what, router, was.get(what), now.get(what)), ids, after.t)
            sent = [e for e in injected if e.value["to"] == router and before.ended.t <= e.t <= after.t]
            count = sum(e.ended.value["sent"] for e in sent)
            refused = now["refused"] - was["refused"]
            if refused < count:
                self.broken("accepted", "%s was sent %d packets and refused %d" % (router, count, refused),
                            ids + [e.id for e in sent], after.t)

    def check(self):
        self.searches()
        self.answers()
        self.changes()
        self.silences()
        return sorted(self.anomalies, key=lambda a: a.t)


def check(history):
    return Judge(history).check()


def figures(history):
    judge = Judge(history)
    searched = history.events(f="confidentiality.searched")
    out = {"packets searched": sum(e.value["packets"] for e in searched),
           "bytes searched": sum(e.value["bytes"] for e in searched),
           "needles": searched[-1].value["needles"] if searched else {},
           "calls": len(judge.ended("call")), "states compared": len(judge.states())}
    for how in ("replayed", "altered", "random"):
        out["packets " + how] = sum(e.ended.value["sent"] for e in judge.ended("inject") if e.value["how"] == how)
    return out
