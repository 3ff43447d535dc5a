"""The engines' own records of their work: their journals, as runs of operations. Pure."""


class Run:
    """A request at an engine. `how` is None while the request is under way, and `died` if its engine ended first."""

    __slots__ = ("engine", "life", "number", "op", "method", "path", "t", "first", "end", "how", "status", "bytes",
                 "hash", "plain", "value")

    def __init__(self, entry, life):
        v = entry.value
        self.engine, self.life, self.number = entry.process, life, v["request"]
        self.op, self.method, self.path, self.t = v.get("op"), v.get("method", "POST"), v.get("path", ""), entry.t
        self.first = self.end = self.how = self.hash = self.plain = None
        self.status = self.bytes = 0
        self.value = {}

    def over(self, t, how, value=None):
        self.end, self.how, self.value = t, how, value or {}
        self.status, self.bytes = self.value.get("status", 0), self.value.get("bytes", 0)
        self.hash, self.plain = self.value.get("hash"), self.value.get("plain")

    def __repr__(self):
        return "request %d of %s (%.3f to %s, %s)" % (
            self.number, self.engine, self.t, "?" if self.end is None else "%.3f" % self.end, self.how)


def engines(history):
    """Names of machines with a journal."""
    named = [e["name"] for e in history.meta.get("engines", [])]
    return named or sorted({e.process for e in history.events(f="request")})


def addresses(history):
    """{address: name} of machines with a journal, of all addresses that they ever had."""
    out = {e["address"]: e["name"] for e in history.meta.get("engines", [])}
    for e in history.events(f="start"):
        if e.process in out.values() and e.value.get("address"):
            out[e.value["address"].rpartition(":")[0] or e.value["address"]] = e.process
    return out


def runs(history):
    """All, by the time at which they began."""
    names, out, under_way, lives = set(engines(history)), [], {}, {}
    for e in history.entries:
        if e.type != "event" or e.process not in names:
            continue
        if e.f in ("start", "begin", "exit", "restart"):
            lives[e.process] = lives.get(e.process, 0) + 1
            for key in [k for k in under_way if k[0] == e.process and e.f != "restart"]:
                under_way.pop(key).over(e.t, "died")
        elif e.f == "request":
            r = Run(e, lives.get(e.process, 0))
            under_way[r.engine, r.number] = r
            out.append(r)
        elif (e.process, e.value.get("request")) in under_way:
            r = under_way[e.process, e.value["request"]]
            if e.f == "first":
                r.first = e.t
            elif e.f == "end":
                r.over(e.t, e.value["how"], e.value)
                del under_way[e.process, e.value["request"]]
    return out


def by_op(history, workload):
    """{id of an operation: its runs}. A workload's requests carry `NAME-ID` in x-jepsen-op."""
    out, prefix = {}, workload + "-"
    for r in runs(history):
        if r.op is not None and r.op.startswith(prefix):
            out.setdefault(int(r.op[len(prefix):]), []).append(r)
    return out
