"""The contents of engines' caches, by the engines' own journals; and the times of disturbances."""

import bisect

from checkers.trouble import faults, touches

NEARLY, GAPS = 0.75, 3
TOLD_S = 10  # within this time all routers know a refusal
EMPTY = ("begin", "restart")  # the engine says that nothing is cached
# Start times nearer than 2 s are one to a router (node/replica/scrape.h, NODE_START_GRAIN_S): no engine that loads a model
# serves so soon. The simulator does, and its second start may pass for the first one.
GRAIN_S = 2.1


class Caches:
    def __init__(self, history):
        meta = history.meta
        self.names = {e["address"]: e["name"] for e in meta.get("engines", [])}
        self.routers = [r["name"] for r in meta.get("routers", [])]
        self.arrived = {}  # (op, engine) -> when a request with it came there
        self.refused = {}  # (op, engine) -> when it was last refused there, and nothing computed
        self.lost = {}     # engine -> when its cache was lost; its first beginning is none
        self.tokens = {}   # op -> of its prompt, as engines count them
        self.at_once = set()  # (engine, time) of losses too soon after its start to be distinguished from that
        self._used = {}    # engine -> (when, tokens that its cache took in until then)
        self._disturbed = faults(history)
        # (from, to, engines) of those that sleep: an engine that does gives its cache up, the simulator keeps it
        self.asleep = [(b, e, v.get("hosts", ())) for b, e, v in self._disturbed
                       if (v.get("wish") or {}).get("mode") == "sleep"]
        self._read(history, set(self.names.values()), set(self.routers))
        self._disturbed.sort(key=lambda d: d[0])

    def _read(self, history, engines, routers):
        gone, seen, under_way = {}, {}, {}
        for e in history.entries:
            if e.type != "event" or e.process not in engines | routers:
                continue
            if e.f == "exit":
                gone[e.process] = e.t
            if e.f == "start" and e.process in gone:
                self._disturbed.append((gone.pop(e.process), e.t, {"hosts": [e.process]}))
            if e.process not in engines:
                continue
            if e.f == "start" and e.value.get("address"):
                self.names[e.value["address"].rpartition(":")[0]] = e.process
            if e.f in EMPTY:
                if e.process in seen:
                    self.lost.setdefault(e.process, []).append(e.t)
                    if e.t - seen[e.process] < GRAIN_S:
                        self.at_once.add((e.process, e.t))
                seen[e.process] = e.t
            elif e.f == "request" and e.value.get("op"):
                self.arrived.setdefault((e.value["op"], e.process), []).append(e.t)
                under_way[e.process, e.value["request"]] = e.value["op"]
            elif e.f == "end":
                op = under_way.pop((e.process, e.value.get("request")), None)
                if op is not None and e.value.get("how") == "refused":
                    self.refused[op, e.process] = e.t
            elif e.f == "first":
                self._take(e)
        self._disturbed += [(t, history.end, {"hosts": [host]}) for host, t in gone.items()]

    def _take(self, e):
        self.tokens[e.value.get("op")] = e.value.get("prompt_tokens", 0)
        used = self._used.setdefault(e.process, ([], []))
        tokens = e.value.get("prompt_tokens", 0) - e.value.get("cached_tokens", 0)
        used[0].append(e.t)
        used[1].append((used[1][-1] if used[1] else 0) + max(tokens, 0))

    def engine(self, replica):
        """The name of the machine behind the router's name of a replica, HOST:PORT or HOST:PORT@RANK."""
        return self.names.get(replica.rpartition(":")[0], replica)

    def arrivals(self, op, engine, until=float("inf")):
        return [t for t in self.arrived.get((op, engine), []) if t <= until]

    def never_held(self, op, engine, t):
        """True if every request that brought the prompt there was refused, early enough before t for the router to
        know."""
        arrived, refused = self.arrived.get((op, engine), ()), self.refused.get((op, engine))
        return refused is not None and len(arrived) == 1 and refused < t - TOLD_S

    def used_between(self, engine, begin, end):
        """Tokens that the engine's cache took in between these times."""
        times, sums = self._used.get(engine, ([], []))
        first, last = bisect.bisect_right(times, begin), bisect.bisect_right(times, end)
        return (sums[last - 1] if last else 0) - (sums[first - 1] if first else 0)

    def shown_after(self, engine, t, until):
        """The first loss of its cache after t, until then, that routers can tell from the one before; None: there was none."""
        return next((at for at in self.lost.get(engine, []) if t < at <= until and (engine, at) not in self.at_once), None)

    def has_journal(self, engine):
        return engine in self.names.values()

    def slept(self, engine, arrived, t, within):
        """True if the engine slept between these, or was seen to a moment after: its cache may count as lost."""
        return any(engine in engines and begin <= t and arrived <= end + within for begin, end, engines in self.asleep)

    def disturbed(self, begin, end, pair):
        """True if a fault touched one of the two machines, or the way between them."""
        return any(b <= end and e >= begin and touches(value, pair) for b, e, value in self._disturbed)

    def due(self, engine, router, lost, within):
        """When the router must know at last that the engine's cache was lost."""
        return self.quiet_since(lost, (engine, router), within) + within

    def quiet_since(self, t, pair, within):
        """The end of trouble with this pair that began at t, or within this many seconds after the end of other
        trouble. A third gap that was nearly long enough counts like one that was long enough."""
        gaps = 0
        for begin, end, value in self._disturbed:
            if end > t and begin < t + within and touches(value, pair):
                gaps += begin - t >= NEARLY * within
                if gaps == GAPS:
                    break
                t = end
        return t

