"""A router that starts is ready in time, even if a firewall passes only one of gossip's protocols. Belongs to no workload.
Pure.

    unready    READY_S after its start, and after the end of all faults at a router meanwhile (except faults BORNE), it
               was not ready
    blind      no life of a router was ever seen to be ready

The lab asks each router on its own loopback until it is, and writes event `ready` (`life`)."""

from checkers.trouble import downs, faults
from history import Anomaly

BORNE = ("gossip-join", "gossip-tcp", "gossip-udp")  # with these it is ready in time all the same
READY_S = 15.0  # a router that no call to join reaches waits for 10 s (node/cluster/join.c); and a machine that is busy


class Life:
    def __init__(self, router, number, begin):
        self.router, self.number, self.begin = router, number, begin
        self.ready = None
        self.end = float("inf")


def lives(history, routers):
    out = {}
    for e in history.events():
        if e.process not in routers:
            continue
        if e.f == "start":
            out[e.process, e.value["life"]] = Life(e.process, e.value["life"], e.t)
        elif e.f in ("ready", "exit") and (e.process, e.value.get("life")) in out:
            life = out[e.process, e.value["life"]]
            if e.f == "ready":
                life.ready = e.t
            else:
                life.end = e.t
    return list(out.values())


def troubles(history, routers):
    """[(from, to, router or None)] of the times in which something may keep a router from being ready."""
    machines = set(routers) | {"ns"}
    out = [(begin, end, None) for begin, end, v in faults(history)
           if v.get("fault") not in BORNE and machines & set(v.get("hosts", ()))]
    return sorted(out + [(d.begin, d.end, d.process) for d in downs(history) if d.process in machines and d.end > d.begin],
                  key=lambda s: s[:2])


def due(life, spans):
    """The time at which the router has to be ready."""
    since = life.begin
    for begin, end, router in spans:
        if router != life.router and begin <= since + READY_S and end > since:
            since = end
    return since + READY_S


def check(history):
    if not history.meta.get("watched"):
        return []  # a history from before this check, or another proxy
    if not history.events(f="ready"):
        return [Anomaly("blind", "no router was ever seen to be ready", t=history.end)]
    routers = {r["name"] for r in history.meta.get("routers", [])}
    stop = next((e.t for e in history.events("lab", "stop")), history.end)
    spans, out = troubles(history, routers), []
    for life in lives(history, routers):
        limit = due(life, spans)
        if min(life.end, stop) > limit and (life.ready is None or life.ready > limit):
            out.append(Anomaly("unready", "%s was not ready %.1f s after its start, and nothing kept it from that for %g s%s" % (
                life.router, limit - life.begin, READY_S, "" if life.ready is None else
                "; it was after %.1f s" % (life.ready - life.begin)), t=limit))
    return out


def figures(history):
    routers = {r["name"] for r in history.meta.get("routers", [])}
    took = [life.ready - life.begin for life in lives(history, routers) if life.ready is not None]
    return {"starts": len(took), "longest until ready, s": round(max(took), 2)} if took else {}
