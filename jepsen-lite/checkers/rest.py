"""When nothing is wrong any more and clients pause, all comes to rest within the stated time. Belongs to no workload. Pure.

    restless    the service did not rest: an operation goes on, or a router has not met another, marks an engine down,
                or has another state
"""

from history import Anomaly


def check(history):
    limit = history.meta.get("limits", {}).get("rest_s")
    out = []
    for e in history.events("lab", "rest"):
        if e.value.get("phase") == "begin" and not e.value.get("calm", True):
            out.append(Anomaly("restless", "not at rest after %s s (%s are allowed): %s" %
                               (e.value.get("waited_s"), limit, e.value.get("why")), t=e.t))
    return out


def figures(history):
    waited = sorted(e.value["waited_s"] for e in history.events("lab", "rest") if "waited_s" in e.value)
    return {"rests": len(waited), "longest until calm, s": waited[-1]} if waited else {}
