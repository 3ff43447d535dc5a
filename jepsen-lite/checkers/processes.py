"""Processes that ended unexpectedly, or did not end when asked to; and output that no program may write: a failed CHECK, a
sanitizer's report. Belongs to no workload; every run is judged by it. Pure.

    crash    a router, an engine or the balancer ended by itself, or by a signal that the lab did not send, or a
             router with a bad status after SIGTERM; except for one that a fault deprived of memory
    stays    a router had to be killed STAYS_S after it was asked to end, or at the end of the run
    said     a router's log has a line that is no log line; another proxy (`--command`) logs as it likes"""

import signal

from checkers.trouble import Trouble
from history import Anomaly

BROKEN = tuple(-s for s in (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGPIPE))
STAYS_S = 35.0  # a drain ends with the last request, and clients have 20 s of patience


def check(history):
    trouble, out = Trouble(history), []
    routers = {r["name"] for r in history.meta.get("routers", [])}
    ending = next((e.t for e in history.events("lab", "stop")), None)
    for e in history.events(f="exit"):
        status, asked = e.value.get("status"), e.value.get("asked")
        starved = any(f.get("fault", "").startswith("memory") and e.process in f.get("hosts", ())
                      for f in trouble.during(e.t - 1, e.t + 1))
        own = not asked or (e.process in routers and status is not None and status > 0)
        if (status in BROKEN and name(status) != asked) or (own and not starved):
            out.append(Anomaly("crash", "%s ended by itself: %s" % (e.process, name(status)), t=e.t))
        if e.process in routers and status == -signal.SIGKILL:
            if ending is not None and e.t > ending:
                out.append(Anomaly("stays", "%s was told to end by SIGINT and went on for %.1f s: it was killed" %
                                   (e.process, e.t - ending), t=e.t))
            elif e.value.get("told_s", 0) > STAYS_S:
                out.append(Anomaly("stays", "%s was told to end and went on for %.1f s: it was killed" %
                                   (e.process, e.value["told_s"]), t=e.t))
    for e in history.events(f="log"):
        text = e.value.get("text", "").strip()
        # A full disk cuts a line; what is left of it begins like one.
        if not history.meta.get("proxy") and e.process in routers and "event" not in e.value and text and not text.startswith("{"):
            out.append(Anomaly("said", "%s: %s" % (e.process, text[:300]), t=e.t))
    return out


def name(status):
    if status is not None and status < 0:
        return signal.Signals(-status).name
    return "exit status %s" % status
