"""Processes that ended although nobody ended them, or that did not end when they were told; and what they said that no
program should: a failed CHECK, a sanitizer's report. Belongs to no workload; every run is judged by it. Pure.

    crash    a router, an engine or the balancer ended by itself and no fault touched it, or by a signal that nobody sent
    stays    a router did not end within the stated time after the lab told it to, at the end
    said     a router's log has a line that is no log line
"""

import signal

from checkers.trouble import Trouble
from history import Anomaly

BROKEN = tuple(-s for s in (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGPIPE))
SAYS = ("Sanitizer", "runtime error", "CHECK(")


def check(history):
    trouble, out = Trouble(history), []
    routers = {r["name"] for r in history.meta.get("routers", [])}
    ending = next((e.t for e in history.events("lab", "stop")), None)
    for e in history.events(f="exit"):
        status, asked = e.value.get("status"), e.value.get("asked")
        touched = asked or any(e.process in f.get("hosts", ()) for f in trouble.during(e.t - 1, e.t + 1))
        if (status in BROKEN and name(status) != asked) or not touched:
            out.append(Anomaly("crash", "%s ended by itself: %s" % (e.process, name(status)), t=e.t))
        if ending is not None and e.t > ending and status == -signal.SIGKILL and e.process in routers:
            out.append(Anomaly("stays", "%s was told to end by SIGINT and went on for %.1f s: it was killed" %
                               (e.process, e.t - ending), t=e.t))
    for e in history.events(f="log"):
        text = e.value.get("text", "")
        if e.process in routers and any(word in text for word in SAYS):
            out.append(Anomaly("said", "%s: %s" % (e.process, text[:300]), t=e.t))
    return out


def name(status):
    if status is not None and status < 0:
        return signal.Signals(-status).name
    return "exit status %s" % status
