"""Each request has exactly one answer or an honest failure. Pure.

Each rule forbids:

    bytes          a client accepts an answer as whole that no engine sent like that, byte for byte, for that request;
                   or has tokens that no engine began to send
    stale answer   it is the answer to another request
    misnamed       an answer names an engine that never had the request
    one answer     unrequested bytes came
    malformed      the bytes are no HTTP
    unfinished     a stream of events ends like a whole one and lacks the last event of its API
    refused        a valid request got a 4xx, and no fault or habit of the engine that gave it explains that
    rejections     an engine refuses requests that its peers accept, and more than a few refusals reach clients
    twice          a deed (a POST that is no computation) ran twice; or one engine had a request twice; or more engines
                   had it than the retries allow, not counting draining ones that refused; or one had it when its client
                   had tokens, or when another had answered whole and no fault was between that engine and a router
    still running  an engine works for a client that left, at a request that was answered, or that went elsewhere; or
                   begins to after that
    avoidable      a request failed, no byte of an answer had gone to its client, and an engine was well and within
                   reach
    waited         a router waits for a silent engine, or for a client that does not read, for longer than its option
                   allows
    needless cut   an answer was cut, and no engine that had the request was touched by a fault
    no answer      for IDLE_S no engine has any work for a request, and the request has no end

A failure is excused for these reasons alone, each for the time given:

    way        a fault touched the client, the router that it asked, or the way between them; START_S longer. For a
               request by the balancer: the balancer or any router. A router that is down excuses it for START_S alone,
               until its check has failed, and excuses no answer that names an error: that answer is from another
               router. A draining router finishes its requests, and behind the balancer nobody sees the drain
    none well  every engine was touched, WELL_S longer (DENIED_S if it denied a model in its list), or has a context
               that is too short for the request
    many       more engines were touched than the retries allow, WELL_S longer, and the router tried some: an engine had
               the request, or the answer reports that
    begun      the client had tokens, and an engine with the request was touched, and not only paused (except for time
               limits, and the client's own patience)
    no repeat  the request is no computation, and an engine was touched
    suspect    the answer names `suspect` or `poison`, and two engines were touched, or only one was well
    budget     the answer names `retry_budget`, and an engine was touched and had the request, or was START_S before
    limit      the answer names a setting (`x-grapevine-limit`), and an engine was touched
    asleep     the client read nothing for longer than `client-write-timeout`
    blame      two engines answered 500 to it
    slow       the client's patience ended while an engine had the request that a fault makes slow
    idle       a kept connection closed before a byte of an answer came, and no engine had the request; clients retry"""

from checkers.journal import addresses, by_op, engines
from checkers.options import seconds
from checkers.trouble import Trouble
from history import Anomaly

START_S = 3.0   # until a router that was touched serves normally again
WELL_S = 8.0    # until an engine that was touched counts as well
GONE_S = 1.5    # until an engine knows that a request is no longer needed: a second, and half of one for the machine
CLOCK_S = 0.05  # between what a client and an engine say of the same moment
OVERTAKEN_S = 0.01  # bytes sent less than this before a reset may never arrive
LOST_S = 32.0   # GONE_S if a fault touched the way: 30 s of the kernel's (TCP_USER_TIMEOUT), and two
IDLE_S = 8.0    # after the last engine's end, or since the request; a suspect waits for a replica for 4 s, others for 3
HELD = 350000   # bytes of an answer that are not with its client, and that sockets do not hold either
CUT_S = 1.5     # beyond its limit, until a router has cut off a client that reads nothing
WAITED_S = 5.0  # beyond the limit: the next engine may have to wait for a moment in which it is alone
RETRIES = 2     # retries-max
SEEN, SEEN_OF = 6, 20  # refusals of such an engine that clients may see, and their share in its requests
PROMPT_TOKENS = 1000   # maximum of a prompt here
DENIED_S = 62.0  # a router does not ask for a model that was listed and denied twice for 60 s (node/replica/model.h)
MODELS = "/v1/models"
COMPUTE = ("/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses", "/generate", "/v1/embeddings")


def is_deed(path):
    return path not in COMPUTE and path != MODELS


def whole(v):
    return bool(v.get("finished")) and 200 <= v.get("status", 0) < 300 and not v.get("failed")


def left(v):
    return v.get("error") == "left"


def told_off(v):
    """A whole answer that says that the request is wrong."""
    return bool(v.get("finished")) and 400 <= v.get("status", 0) < 500 and v["status"] not in (408, 429)


def failed(v):
    """As docs/glossary.md has a failed request (5xx, queue_full, cut), seen by the client: no client of a run is over a limit or slow
    on purpose, so a 429 is the queue's, and a 408 is no fault of its own."""
    return not left(v) and not whole(v) and not told_off(v)


class Service:
    """A history, and what its checks share."""

    def __init__(self, history, workload="service"):
        self.history, self.trouble = history, Trouble(history)
        self.runs = by_op(history, workload)
        self.engines, self.names = engines(history), addresses(history)
        self.answers = {(r.bytes, r.hash): r.op for runs in self.runs.values() for r in runs if r.path != MODELS and r.hash}
        self.routers = [r["name"] for r in history.meta.get("routers", [])]
        options = history.meta.get("options", {})
        self.retries = int(options.get("retries-max", RETRIES))
        self.sleeper_s = seconds(options.get("client-write-timeout", ""))
        self.limited = any(name.startswith("upstream-") for name in options)
        habits = {e["name"]: e.get("habits", {}) for e in history.meta.get("engines", [])}
        self.contexts = {n: int(h["max-model-len"]) for n, h in habits.items() if "max-model-len" in h}
        self.seen = {}  # id of a fault that rejects: its operations that clients saw
        self.anomalies, self.excused, self.unproved = [], {}, 0

    def broken(self, rule, operation, text, t=None):
        self.anomalies.append(Anomaly(rule, text, [operation.id] if operation is not None else [],
                                      operation.t if t is None else t))

    def asked(self, o):
        """Routers that may have had the request."""
        return [o.value["at"]] if o.value.get("at") in self.routers else self.routers

    def check(self):
        for o in self.history.operations("service."):
            self.silence(o)
            if o.ended is None:
                continue
            self.answer(o, o.ended.value)
            self.repeats(o)
            self.lasting(o)
            self.patient(o)
            self.reading(o, o.ended.value)
            if failed(o.ended.value):
                self.failure(o, o.ended.value)
        self.rejections()
        return self.anomalies

    # --- what came ---

    def silence(self, o):
        """Ends when no work is done for the request any more. A fault on its way delays this, and for as long again
        after its end: a TCP connection may wait so long before it sends again."""
        mine = self.runs.get(o.id, [])
        end = self.history.end if o.ended is None else o.ended.t
        since = max([o.t] + [self.history.end if r.end is None else r.end for r in mine])
        if end <= since + IDLE_S:
            return
        ways = [[o.process, o.value.get("at", "lb"), r] + [e] for r in self.asked(o) for e in self.engines] or \
            [[o.process, o.value.get("at", "lb")]]
        since = max([since] + [self.trouble.settled(w, o.t, end) for w in ways])
        if end > since + IDLE_S:
            self.broken("no answer", o, "%s: no engine did anything for it for %.1f s; %s" % (
                told(o), end - since, mine or "none had it"))

    def answer(self, o, v):
        if v.get("error") == "malformed":
            self.broken("malformed", o, "%s: %s" % (told(o), v.get("text", "")))
        if v.get("extra"):
            self.broken("one answer", o, "%s: %d bytes behind its end: %s" % (told(o), v["extra"], v.get("text", "")))
        ended = v.get("framed") and v.get("streamed") and v.get("status") == 200
        if ended and not v.get("last") and not v.get("failed"):
            self.broken("unfinished", o, "%s: a stream without its last event passes for whole" % told(o))
        if told_off(v) and not self.knows_no_deeds(o, v) and not self.rejected(o, v):
            self.broken("refused", o, "%s: %s" % (told(o), v.get("text", "")[:200]))
        if whole(v) and o.value["path"] == MODELS:
            if (v["bytes"], v["hash"]) in self.answers:
                self.broken("stale answer", o, "%s: the answer to %s" % (told(o), self.answers[v["bytes"], v["hash"]]))
        elif whole(v):
            self.bytes(o, v)
            self.named(o, v)
        elif v.get("tokens") and not any(r.first is not None for r in self.runs.get(o.id, [])):
            self.broken("bytes", o, "%s: %d events with tokens, and no engine sent any; %s" % (
                told(o), v["tokens"], self.runs.get(o.id) or "none had the request"))

    # --- engines that refuse what their peers accept ---

    def short_for(self, o):
        """Engines whose context is too short for it, or may be."""
        need = o.value.get("tokens", 0) + PROMPT_TOKENS
        return {e for e, context in self.contexts.items() if need > context}

    def ill_at(self, o):
        """Engines that a fault touched (counted WELL_S longer), or that were out of reach."""
        t, t0, t1 = self.trouble, o.t, o.ended.t
        denied = {e for v in t.during(t0 - DENIED_S, t1) for e in v.get("hosts", ())
                  if (v.get("wish") or {}).get("mode") == "status_404"}
        return {e for e in self.engines if e in denied or t.ill(e, t0 - WELL_S, t1) or any(
            t.cut(r, e, t0 - WELL_S, t1) for r in self.asked(o))}

    def rejected(self, o, v):
        """True if the answer is from an engine with another configuration. A fault may cause this many such answers
        if the engine's peers were well. If they were not, the number is not limited."""
        ill, short = self.ill_at(o), self.short_for(o)
        for r in self.runs.get(o.id, []):
            fault = self.trouble.rejecting(r.engine, r.t) if r.status == v["status"] else None
            if fault is not None:
                if ill == {r.engine}:
                    self.seen.setdefault(fault["id"], []).append(o)
                return True
            if r.status == v["status"] == 400 and r.engine in short and not set(self.engines) - ill - short:
                return True
        return False

    def rejections(self):
        for begin, end, fault in self.trouble.faults:
            seen = self.seen.get(fault.get("id"), [])
            had = sum(r.engine in fault["hosts"] and begin <= r.t <= end for runs in self.runs.values() for r in runs) \
                if seen else 0
            if len(seen) > SEEN + had / SEEN_OF:
                self.broken("rejections", seen[0], "%d answers of %s, which refuses, reached clients, of %d that it gave: %s" % (
                    len(seen), ", ".join(fault["hosts"]), had, ", ".join(told(o) for o in seen[:5])))

    def engine(self, v):
        """The engine with a journal that the answer names; None: it names none."""
        return self.names.get((v.get("replica") or "").rpartition(":")[0])

    def named(self, o, v):
        engine = self.engine(v)
        if engine is not None and not any(r.engine == engine for r in self.runs.get(o.id, [])):
            self.broken("misnamed", o, "%s: it names %s, which never had it; %s" % (
                told(o), engine, self.runs.get(o.id) or "none had it"))

    def knows_no_deeds(self, o, v):
        """True if an engine reported this: an engine of another workload, without a journal, or one with this in its
        journal."""
        return is_deed(o.value["path"]) and (v.get("replica") and self.engine(v) is None or any(
            r.status == v["status"] for r in self.runs.get(o.id, [])))

    def bytes(self, o, v):
        bodies = [(v["bytes"], v["hash"])] + [(a["bytes"], a["hash"]) for a in v.get("also", ())]
        mine = self.runs.get(o.id, [])
        if any(self.sent(r, bodies, o) for r in mine):
            return
        # The process may have been killed between the last byte and the line about it.
        if any(r.how == "died" and r.first is not None and r.end > o.ended.t - 1 for r in mine) or \
                any(r.how is None and self.history.end < o.ended.t + 1 for r in mine):
            self.unproved += 1
            return
        for other, runs in self.runs.items():
            if other != o.id and any(r.hash == v["hash"] and r.bytes == v["bytes"] for r in runs):
                self.broken("stale answer", o, "%s: the answer to operation %d" % (told(o), other))
                return
        self.broken("bytes", o, "%s: no engine sent this answer of %d bytes as a whole one; %s" % (
            told(o), v["bytes"], ", ".join("%r, %d bytes" % (r, r.bytes) for r in mine) or "none had the request"))

    @staticmethod
    def sent(r, bodies, o):
        """True if the run sent one of these bodies. A stream may break behind its last event. The router removes an
        event of usage that it asked for."""
        if r.how != "whole" and not (r.how in ("failed", "left") and o.ended.value.get("last")):
            return False
        hashes = [(r.bytes, r.hash)]
        if r.plain and o.value.get("usage", True) is None:
            hashes.append((r.plain["bytes"], r.plain["hash"]))
        return any(b in bodies for b in hashes)

    # --- what ran ---

    def repeats(self, o):
        mine = [r for r in self.runs.get(o.id, []) if r.method == "POST"]
        if is_deed(o.value["path"]):
            if len(mine) > 1:
                self.broken("twice", o, "%s: a deed ran %d times: %s" % (told(o), len(mine), mine))
            return
        tries = []
        for r in mine:
            # A connection that was used before may close at the moment of the next request: it is sent again there.
            if tries and tries[-1].engine == r.engine and self.vanished(tries[-1], o.value.get("stream")):
                tries[-1] = r
            elif any(t.engine == r.engine for t in tries):
                self.broken("twice", o, "%s: one engine had it twice: %s" % (told(o), mine))
                return
            else:
                tries.append(r)
        late = self.needless(o, mine)
        if late:
            self.broken("twice", o, "%s: %s: %s" % (told(o), late, mine))
        elif sum(not self.drains(r) for r in tries) > 1 + self.retries:
            self.broken("twice", o, "%s: %d engines had it: %s" % (told(o), len(tries), mine))

    def needless(self, o, mine):
        """Why one of these runs should not have happened; None: each may have happened. A fault may delay requests."""
        for i, r in enumerate(mine[1:], 1):
            # Its client began before any engine had it.
            token_s = o.ended.value.get("token_s")
            if token_s is not None and r.t > mine[0].t + token_s + CLOCK_S and not self.slow(o, r.engine, o.t, r.t):
                return "%s had it when its client had tokens" % r.engine
            for n in mine[:i]:
                if n.how == "whole" and 200 <= n.status < 300 and n.end < r.t and \
                        not any(self.slow(o, e, n.t - WELL_S, r.t) for e in (n.engine, r.engine)):
                    return "%s had it when %s had answered" % (r.engine, n.engine)
        return None

    def slow(self, o, engine, t0, t1):
        return any(self.trouble.slow([router, engine], t0 - 1, t1) for router in self.asked(o))

    def drains(self, r):
        """True if a draining engine refused the request."""
        return r.how == "refused" and any(
            r.engine in v.get("hosts", ()) and (v.get("wish") or {}).get("mode") == "draining"
            for v in self.trouble.during(r.t, r.end))

    @staticmethod
    def vanished(r, streamed):
        """True if its connection closed soon, without a byte of an answer. (An engine may have begun to compute an
        answer of which nothing is sent before its end; a reset overtakes bytes sent just before it.)"""
        silent = r.first is None or not streamed if r.how == "died" else r.bytes == 0
        silent = silent or (r.how != "died" and r.first is not None and r.end - r.first < OVERTAKEN_S)
        return r.how in ("failed", "died", "left") and silent and r.end - r.t < 0.5

    def lasting(self, o):
        mine = self.runs.get(o.id, [])
        for i, r in enumerate(mine):
            # The request is no longer needed once its operation is over, or another engine has it.
            since = max(min([o.ended.t] + [n.t for n in mine[i + 1:]]), r.t)
            end = self.history.end if r.end is None else r.end
            if self.beyond(r.t, o, r, o.ended.t, GONE_S):
                self.broken("still running", o, "%s: %r begins %.1f s after its operation ended" % (
                    told(o), r, r.t - o.ended.t))
            elif self.beyond(end, o, r, since, GONE_S + (
                    2.8 if self.is_sglang(r.engine) and not o.value.get("stream") else 0)):
                self.broken("still running", o, "%s: %r runs on %.1f s after %s" % (
                    told(o), r, end - since, "its operation ended" if since == o.ended.t else "another engine had it"))

    def beyond(self, t, o, r, since, seconds):
        """True if at t the engine must know a fact that became true at `since`: this many seconds later, or later if
        faults delayed it."""
        limit = since + seconds
        if t <= limit:
            return False
        ways = [[o.process, router, r.engine] for router in self.asked(o)]
        if o.value.get("at") not in self.routers:
            ways.append([o.process, o.value.get("at", "lb"), r.engine])
        if any(self.trouble.slow(w, since - 1, limit) for w in ways):
            limit = max([since] + [self.trouble.healed(w, limit) for w in ways]) + LOST_S
        return t > limit

    def patient(self, o):
        """With a limit of its own a router gives up a silent engine, and its client is informed."""
        option = "upstream-first-token-timeout" if o.value.get("stream") else "upstream-whole-answer-timeout"
        limit = seconds(self.history.meta.get("options", {}).get(option, ""))
        mine = self.runs.get(o.id, [])
        if not limit or any(self.trouble.ill(r, o.t, o.ended.t) for r in self.asked(o)):
            return
        for r, following in zip(mine, mine[1:] + [None]):
            ends = (r.first, r.end, o.ended.t, following and following.t)
            waited = min(t for t in ends if t is not None) - r.t
            if waited > limit + WAITED_S:
                self.broken("waited", o, "%s: %r said nothing for %.1f s, and %s is %g s" % (
                    told(o), r, waited, option, limit))

    def reading(self, o, v):
        """A client that reads nothing is cut off: its engine had given all, more than sockets hold, and all came. A
        balancer in between reads for it."""
        if o.value.get("at") not in self.routers or self.asleep(o) <= 0 or v.get("reused") or not whole(v) or v["bytes"] <= HELD:
            return
        due = o.t + o.value["sleep_s"] - self.sleeper_s - CUT_S
        if any(r.how == "whole" and r.end < due for r in self.runs.get(o.id, [])):
            self.broken("waited", o, "%s: its client read nothing for %g s, and has all %d bytes" % (
                told(o), o.value["sleep_s"], v["bytes"]))

    def asleep(self, o):
        """For how much longer its client read nothing than the routers' option allows."""
        return o.value.get("sleep_s", 0) - self.sleeper_s if self.sleeper_s else 0

    def is_sglang(self, engine):
        return any(e["name"] == engine and e.get("kind") == "sglang" for e in self.history.meta.get("engines", []))

    # --- what failed ---

    def failure(self, o, v):
        why = self.excuse(o, v)
        if why is not None:
            self.excused[why] = self.excused.get(why, 0) + 1
            return
        begun = v.get("tokens") or (not v.get("streamed") and v.get("status") == 200 and v.get("bytes"))
        met = self.runs.get(o.id, [])
        self.broken("needless cut" if begun else "avoidable", o, "%s: %s after %.1f s, %d events with tokens; %s" % (
            told(o), what(v), o.ended.t - o.t, v.get("tokens", 0), met or "no engine had it"))

    def way_is_ill(self, o, routers, direct):
        """True if a fault was on the way. A draining router finishes its requests, as if its client checked its
        health."""
        t, since, end = self.trouble, o.t - START_S, o.ended.t
        begun = o.ended.value.get("status", 0) != 0
        if direct:
            router = routers[0]
            return t.ill(o.process, since, end) or t.cut(o.process, router, since, end) or \
                t.ill(router, since, end, checked=begun) or t.started(router, since, o.t)
        balancer = o.value.get("at", "lb")
        told_why = o.ended.value.get("finished") and o.ended.value.get("reason")
        return t.way([o.process, balancer], since, end) or any(
            t.cut(balancer, r, since, end) or t.touched(r, since, end) or
            not told_why and t.ill(r, since, end, checked=True) for r in routers)

    def excuse(self, o, v):
        """Its name, or None."""
        t, t0, t1 = self.trouble, o.t, o.ended.t
        if v.get("reused") and v.get("status") == 0 and v.get("error") in ("closed", "reset") and o.id not in self.runs:
            return "idle"
        if self.asleep(o) > 0:
            return "asleep"
        routers = self.asked(o)
        direct = len(routers) == 1 and o.value.get("at") == routers[0]
        if self.way_is_ill(o, routers, direct):
            return "way"
        ill, short = self.ill_at(o), self.short_for(o)
        if not ill:
            return None
        met = {r.engine for r in self.runs.get(o.id, [])}
        if v.get("tokens") or (not v.get("streamed") and v.get("status") == 200 and v.get("bytes")):
            paused = v.get("error") != "timeout" and not self.limited and all(
                t.only("pauses", e, t0 - WELL_S, t1) for e in met & ill)
            return "begun" if met & ill and not paused else None
        if len(ill | short) == len(self.engines):
            return "none well"
        tried = met or v.get("reason") or v.get("limit") or v.get("status") in (502, 503, 504)
        if len(ill) > self.retries and tried and v.get("reason") != "no_replica":
            return "many"
        if is_deed(o.value["path"]):
            return "no repeat"
        if v.get("reason") in ("suspect", "poison") and (len(ill) > 1 or len(self.engines) - len(ill | short) == 1):
            return "suspect"
        if v.get("reason") == "retry_budget" and (met & ill or any(
                t.ill(e, t0 - START_S, t1) or any(t.cut(r, e, t0 - START_S, t1) for r in routers) for e in ill)):
            return "budget"
        if v.get("limit"):
            return "limit"
        if v.get("status") == 500 and sum(r.status == 500 for r in self.runs.get(o.id, [])) > 1:
            return "blame"
        if v.get("error") == "timeout" and any(t.serves(e, t0 - WELL_S, t1) for e in met):
            return "slow"
        return None


def told(o):
    return "operation %d (%s of %s at %s)" % (o.id, o.f, o.process, o.value.get("at", "?"))


def what(v):
    said = ", ".join("%s %s" % (k, v[k]) for k in ("error", "reason", "limit") if v.get(k))
    event = ", an error event" if v.get("failed") and v.get("status") == 200 else ""
    return "status %d%s%s" % (v.get("status", 0), ", " + said if said else "", event)


def check(history):
    return Service(history).check()


def figures(history):
    s = Service(history)
    s.check()
    ended = [o.ended.value for o in history.operations("service.") if o.ended is not None]
    first = sorted(v["token_s"] for v in ended if v.get("token_s") is not None and whole(v))
    out = {"requests": len(ended), "whole": sum(whole(v) for v in ended), "left": sum(left(v) for v in ended),
           "failed": sum(failed(v) for v in ended), "unproved": s.unproved,
           "excused": dict(sorted(s.excused.items()))}
    if first:
        out["first token p50, p99"] = [first[len(first) // 2], first[min(len(first) - 1, len(first) * 99 // 100)]]
    return out
