"""Resources that routers use on their machines at rest. Belongs to no workload; every run is judged by it. Pure.

The lab writes at each rest, for each router, event `holds`: `descriptors`, its number of open ones; `sockets`, the
number of TCP sockets on its machine.

    descriptors    it has more open than sockets, a few files and LIMIT
    growing        the number of sockets grew at GROWS rests one after another, by GROWN in all
    blind          at a calm rest nobody looked
    sockets        its machine has more than SOCKETS, which is several times the need of clients, engines, the balancer
                   and other routers at rest (25)"""

from checkers.lives import unread
from checkers.naming import lately
from history import Anomaly

LIMIT = 20  # the loop, pipes, the log, UDP: eleven; and connections that open at that moment
SOCKETS = 100
GROWS, GROWN = 6, 30
LIES = 80  # node/cluster/lie.c


def told(faults, t):
    """Names from a lying member behind which nothing runs: a router tries each now and then."""
    return LIES if any(v["fault"] == "member-lies" for v in lately(faults, t, t)) else 0


def check(history):
    faults = history.faults()
    worst, sockets, grows, growing, out = {}, {}, {}, {}, []
    for e in history.events(f="holds"):
        if "sockets" in e.value:
            some = grows.get(e.process, [])
            some = grows[e.process] = (some if some and e.value["sockets"] > some[-1] else []) + [e.value["sockets"]]
            if len(some) > GROWS and some[-1] - some[0] >= GROWN:
                growing.setdefault(e.process, (some, e.t))
        more = e.value.get("descriptors", 0) - e.value.get("sockets", 0)
        if more > max(LIMIT, worst.get(e.process, (0,))[0]):
            worst[e.process] = more, e
        if e.value.get("sockets", 0) > max(SOCKETS + told(faults, e.t), sockets.get(e.process, (0,))[0]):
            sockets[e.process] = e.value["sockets"], e
    for router, (_, e) in worst.items():
        out.append(Anomaly("descriptors", "%s has %d descriptors open at rest, and its machine %d sockets" %
                           (router, e.value["descriptors"], e.value["sockets"]), t=e.t))
    for router, (count, e) in sockets.items():
        out.append(Anomaly("sockets", "the machine of %s has %d sockets at rest" % (router, count), t=e.t))
    for router, (some, t) in growing.items():
        out.append(Anomaly("growing", "the machine of %s has ever more sockets at rest: %s" % (router, some), t=t))
    routers = [r["name"] for r in history.meta.get("routers", [])]
    if history.meta.get("proxy"):
        return out  # the resources of another proxy are not checked
    return out + unread(history, routers, [e for e in history.events(f="holds") if "descriptors" in e.value])


def figures(history):
    held = [e.value["descriptors"] for e in history.events(f="holds") if e.value]
    sockets = [e.value["sockets"] for e in history.events(f="holds") if e.value]
    return {"most descriptors of a router at rest": max(held), "most sockets": max(sockets)} if held else {}
