"""When which router ran. Pure."""

from history import Anomaly


class Lives:
    """When which router ran."""

    def __init__(self, history, names):
        self.spans = {n: [] for n in names}
        for e in history.events():
            if e.process not in self.spans:
                continue
            spans = self.spans[e.process]
            if e.f == "start":
                spans.append([e.t, float("inf")])
            elif e.f == "exit" and spans:
                spans[-1][1] = min(spans[-1][1], e.t)

    def alive(self, name, t):
        return any(begin <= t < end for begin, end in self.spans.get(name, ()))

    def all_along(self, name, t0, t1):
        return any(begin <= t0 and t1 < end for begin, end in self.spans.get(name, ()))

    def dead_since(self, name, t):
        """The end of the last life, if the process did not run at t but did before; None: running, or never started."""
        ends = [end for _, end in self.spans.get(name, ()) if end <= t]
        return max(ends) if ends and not self.alive(name, t) else None


def unread(history, routers, reads):
    """[Anomaly] for each calm rest in which a router ran all along, but none of these entries was read: it proves
    nothing."""
    lives = Lives(history, routers)
    return [Anomaly("blind", "nothing was read at the rest from %.1f to %.1f s" % (begin, end), t=end)
            for _, begin, end, calm in history.rests()
            if calm and any(lives.all_along(r, begin, end) for r in routers)
            and not any(begin <= e.t <= end for e in reads)]
