"""Every line that a router logs is in its log, or counted as lost. Belongs to no workload. Pure.

    lost    of the lines logged while the disk hung, more are missing than the router counts

While the disk of a router's log hangs (fault `disk-frozen`), the lab may make the router log more lines than fit into
its buffer: event `flood` (`life`, `prefix` of the ids of the requests, how many were `asked`; `before` and `after`:
grapevine_log_lines_dropped_total, null without an answer)."""

from history import Anomaly

LATE_S = 2.0     # after a disk stops hanging, all waiting lines are written within this time
WRITTEN_S = 5.0  # the router must live on for this time, or it loses waiting lines


def written_since(faults, router, t):
    """The earliest time at which a line that is seen at t may have been logged."""
    return min([t] + [begin for begin, end, v in faults
                      if v.get("fault") == "disk-frozen" and router in v.get("hosts", ()) and begin <= t <= end + LATE_S])


def disks(history, router, *kinds):
    return [(begin, end) for begin, end, v in history.faults() if v.get("fault") in kinds and router in v.get("hosts", ())]


def written(history, e):
    """True if the log has every line of this flood that the router did not lose: it lived on, and the disk recovered
    and was not full."""
    went_on = max([end for begin, end in disks(history, e.process, "disk-frozen") if begin <= e.t <= end] or [e.t]) + WRITTEN_S
    again = [t for t, _ in disks(history, e.process, "disk-frozen") if e.t < t <= went_on]
    full = [t for t, end in disks(history, e.process, "disk-full") if t <= went_on and end >= e.t]
    ended = [x.t for x in history.events(e.process, "exit") if e.t - WRITTEN_S <= x.t <= went_on]
    return went_on <= history.end and not again + full + ended


def check(history):
    out = []
    for e in history.events(f="flood"):
        v = e.value
        if v["before"] is None or v["after"] is None or not written(history, e):
            continue
        there = sum(str(line.value.get("id", "")).startswith(v["prefix"]) for line in history.events(e.process, "log"))
        missing, counted = v["asked"] - there, v["after"] - v["before"]
        if missing > counted:
            out.append(Anomaly("lost", "%s was asked for %d lines while its disk hung; %d are not there, and it counts %d" % (
                e.process, v["asked"], missing, counted), t=e.t))
    return out


def figures(history):
    floods = [e.value for e in history.events(f="flood") if None not in (e.value["before"], e.value["after"])]
    return {"lines that were lost and counted": sum(v["after"] - v["before"] for v in floods)} if floods else {}
