"""One after the other is restarted: all routers, all engines, with this build or another; or the balancer at once.

The end and start of each process are excuses themselves: the fault as a whole excuses nothing."""

import signal
import time

from .base import Nemesis, names, plural, shared
from .process import built, start_again
from .victims import Held


def ready(router):
    try:
        return router.admin("GET", "/readyz", timeout=1)[0] == 200
    except (OSError, ValueError):
        return False


class _Rolling(Nemesis):
    """Goes on to the next when the one before is ready. One that another fault holds is left out."""
    seconds = (8, 30)

    def roll(self, service, kind, change=None, pause_s=0):
        held, everybody = shared(service, Held), getattr(service, kind)
        self.later(held.drop, self)
        for p in everybody:
            if self.over.is_set():
                return
            if not held.take_this(self, p.name, names(everybody)):
                continue
            try:
                self.again(p, kind, change)
            finally:
                held.drop(self, p.name)
            self.over.wait(pause_s)

    def again(self, p, kind, change):
        """`change`: runs between its end and its start."""
        p.signal(signal.SIGTERM)
        p.wait(60)
        if p.alive:
            return
        if change is not None:
            change(p)
        p.start()
        limit = time.monotonic() + 20
        while kind == "routers" and not ready(p) and p.alive and time.monotonic() < limit:
            time.sleep(0.05)

    def everybody_is_there(self, service, kind):
        for p in getattr(service, kind):
            if p.name not in shared(service, Held).all():
                start_again(p)


class RollingRestart(_Rolling):
    """SIGTERM to one router or engine after the other; the next follows when it runs again."""
    name = "rolling-restart"

    def start(self, service, rng):
        kinds = rng.choice((["routers"], ["engines"], ["routers", "engines"]))
        for kind in kinds:
            self.later(self.everybody_is_there, service, kind)
        pause_s = rng.uniform(0.5, 3)
        self.background(lambda: [self.roll(service, kind, pause_s=pause_s) for kind in kinds])
        return {"hosts": [p.name for kind in kinds for p in getattr(service, kind)], "excuses": False,
                "text": "SIGTERM to one after the other of all %s; it runs again %.1f s before the next" % (
                    plural(kinds), pause_s)}


class Upgrade(_Rolling):
    """One router after the other is replaced by one of a later version (build/lab with FUTURE=1), and back."""
    name = "upgrade"
    seconds = (20, 40)

    @staticmethod
    def missing():
        return None if built("lab") else "build/lab/grapevine (make build-lab)"

    @staticmethod
    def later_version(r):
        r.build, r.env["FUTURE"] = built("lab"), "1"

    @staticmethod
    def this_version(r):
        r.build = r.service.build
        r.env.pop("FUTURE", None)

    def start(self, service, rng):
        self.later(self.back, service)
        self.background(self.roll, service, "routers", self.later_version)
        return {"hosts": names(service.routers), "excuses": False,
                "text": "one router after the other is replaced by one of a later version; back again at the end"}

    def back(self, service):
        held, routers = shared(service, Held), names(service.routers)
        for r in service.routers:
            if "FUTURE" not in r.env:
                continue
            if held.take_this(self, r.name, routers):
                self.again(r, "routers", self.this_version)
                held.drop(self, r.name)
            else:
                self.this_version(r)  # its next start, by the fault that holds it


class RestartBalancer(Nemesis):
    """SIGKILL to the balancer: connections through it break, those to routers directly do not."""
    name = "restart-balancer"
    seconds = (1, 3)

    def start(self, service, rng):
        self.later(start_again, service.balancer)
        service.balancer.signal(signal.SIGKILL)
        service.balancer.wait(10)
        return {"hosts": [service.balancer.name], "text": "SIGKILL to the balancer; started again at the end"}
