"""Disturbances by time and place: the faults of a history, by machine and by way. Pure.

A fault names the machines that it touches (`hosts`). It may have more fields:

    links       pairs of machines: only the ways between them are touched, the machines themselves are well
    harmless    true: it slows or repeats, and breaks nothing; it excuses no failure
    excuses     false: it excuses nothing at all. Processes that end and start are recorded themselves
    serves      true: a machine that it touches still serves by slow or strange ways (it hangs, crawls, lies),
                so that a client may have to wait for it
    pauses      true: a machine that it touches continues afterwards; an answer that has begun there is not cut
    rejects     true: a machine that it touches refuses requests that its peers accept; clients hardly see it

A process that is down is trouble by itself, whatever the faults."""

from checkers.naming import LIAR

DRAIN_S = 12.0  # a router that got SIGTERM closes its port at most this long before it ends
LAG_S = 0.5     # the lab sees the end of a process later than its clients do, on a machine that is busy


class Down:
    """A process that is down, from its end to its next start. `drained`: it ended well after SIGTERM. `checked`: to
    users of its health check only its end is trouble, and only if it did not drain before."""

    def __init__(self, process, begin, end, drained):
        self.process, self.begin, self.end, self.drained = process, begin, end, drained

    def touches(self, t0, t1, checked=False):
        if checked:
            return t0 <= self.begin <= t1 + LAG_S and not self.drained
        return self.begin - (DRAIN_S if self.drained else LAG_S) <= t1 and self.end >= t0


def downs(history):
    out, away = [], {}
    for e in history.events():
        if e.process == LIAR:
            continue  # unused by anything
        if e.f == "start" and "life" in e.value:
            begin, drained = away.pop(e.process, (0, False))
            out.append(Down(e.process, begin, e.t, drained))
        elif e.f == "exit":
            away[e.process] = e.t, e.value.get("asked") == "SIGTERM" and e.value.get("status") == 0
    return out + [Down(p, t, history.end, drained) for p, (t, drained) in away.items()]


def faults(history):
    """[(from, to, value)] of those that excuse anything."""
    return [f for f in history.faults() if f[2].get("excuses", True)]


def touches(fault, machines):
    """True if the fault is at one of these machines, or on the way between two of them. A fault that names links spares
    machines; one without victims touches nothing."""
    if fault.get("links"):
        return any(set(pair) <= set(machines) for pair in fault["links"])
    return bool(set(fault.get("hosts", ())) & set(machines))


class Trouble:
    def __init__(self, history):
        self.faults, self.downs = faults(history), downs(history)

    def during(self, t0, t1, harmless=False):
        """Faults that touch that time."""
        return [v for begin, end, v in self.faults
                if begin <= t1 and end >= t0 and (harmless or not v.get("harmless"))]

    def anything(self, t0, t1):
        """True if any fault was active, or any process was down."""
        return bool(self.during(t0, t1, harmless=True)) or any(d.touches(t0, t1) for d in self.downs)

    def ill(self, host, t0, t1, harmless=False, checked=False):
        """True if the machine itself is touched."""
        if any(d.process == host and d.touches(t0, t1, checked) for d in self.downs):
            return True
        return self.touched(host, t0, t1, harmless)

    def touched(self, host, t0, t1, harmless=False):
        """True if a fault touches the machine; processes that are down do not count."""
        return any(host in v.get("hosts", ()) and not v.get("links") for v in self.during(t0, t1, harmless))

    def started(self, process, t0, t1):
        return any(d.process == process and t0 <= d.end <= t1 + LAG_S for d in self.downs)

    def cut(self, a, b, t0, t1, harmless=False):
        """True if the way between the two is touched."""
        return any({a, b} == set(pair) for v in self.during(t0, t1, harmless) for pair in v.get("links") or ())

    def way(self, machines, t0, t1, harmless=False):
        """True if any of them, or any way between two neighbours in that list, is touched."""
        return any(self.ill(m, t0, t1, harmless) for m in machines) or \
            any(self.cut(a, b, t0, t1, harmless) for a, b in zip(machines, machines[1:]))

    def slow(self, machines, t0, t1):
        """True if messages from one to the next may be late: a fault touches one, or a way, even a slow one."""
        return self.way(machines, t0, t1) or \
            any(self.cut(a, b, t0, t1, harmless=True) for a, b in zip(machines, machines[1:]))

    def healed(self, machines, t):
        """When the last that makes them slow, and began before t, ended."""
        last = 0
        for begin, end, v in self.faults:
            if begin <= t and touches(v, machines) and (v.get("links") or not v.get("harmless")):
                last = max(last, end)
        return max([last] + [d.end for d in self.downs if d.process in machines and d.begin <= t])

    def settled(self, machines, t0, t1):
        """When the last fault of that time that touches these, or a way between two, was over as long as it lasted."""
        last = 0
        for begin, end, v in self.faults:
            if touches(v, machines) and begin <= t1 and 2 * end - begin >= t0:
                last = max(last, 2 * end - begin)
        return max([last] + [d.end for d in self.downs if d.process in machines and d.touches(t0, t1)])

    def only(self, key, host, t0, t1):
        """True if all faults that touch the machine have this property."""
        return not any(d.process == host and d.touches(t0, t1) for d in self.downs) and \
            all(v.get(key) for v in self.during(t0, t1) if touches(v, [host]) or any(host in p for p in v.get("links") or ()))

    def rejecting(self, host, t):
        """The fault, if the machine refuses then what its peers accept; else None."""
        return next((v for v in self.during(t, t) if v.get("rejects") and host in v.get("hosts", ())), None)

    def serves(self, host, t0, t1):
        """True if the machine answers by slow or strange ways."""
        return any(host in v.get("hosts", ()) and v.get("serves") for v in self.during(t0, t1))
