"""What routers hold of their machines when all is at rest. Belongs to no workload; every run is judged by it. Pure.

The lab writes at each rest, of each router: event `holds`: `descriptors`, how many it has open; `sockets`, how many TCP
sockets its machine has.

    descriptors    it has more open than sockets, a few files and LIMIT
"""

from history import Anomaly

LIMIT = 20  # the loop, pipes, the log, UDP: eleven; and connections that open at that moment


def check(history):
    worst = {}
    for e in history.events(f="holds"):
        more = e.value.get("descriptors", 0) - e.value.get("sockets", 0)
        if more > max(LIMIT, worst.get(e.process, (0,))[0]):
            worst[e.process] = more, e
    return [Anomaly("descriptors", "%s has %d descriptors open at rest, and its machine %d sockets" %
                    (router, e.value["descriptors"], e.value["sockets"]), t=e.t) for router, (_, e) in worst.items()]


def figures(history):
    held = [e.value["descriptors"] for e in history.events(f="holds") if e.value]
    return {"most descriptors of a router at rest": max(held)} if held else {}
