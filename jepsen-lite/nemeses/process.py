"""Processes that die, end or are stopped."""

import os
import signal

from .base import TOP, Nemesis, names, plural


def start_again(process):
    if not process.alive:
        process.start()


class _Kill(Nemesis):
    kind = None
    seconds = (1, 8)

    def start(self, service, rng):
        chosen = self.some(service, rng, self.kind)
        if not chosen:
            return self.nobody()
        for p in chosen:
            self.later(start_again, p)
            p.signal(signal.SIGKILL)
            p.wait(10)
        return {"hosts": names(chosen), "excuses": False,
                "text": "SIGKILL to %s; started again at the end" % plural(names(chosen))}


class Kill(_Kill):
    """SIGKILL to routers."""
    name, kind = "kill", "routers"


class KillEngine(_Kill):
    """SIGKILL to engines."""
    name, kind = "kill-engine", "engines"


class Terminate(Nemesis):
    """SIGTERM to routers: they drain and end; at the end of the fault they run again."""
    name = "term"
    seconds = (3, 10)

    def start(self, service, rng):
        chosen = self.some(service, rng, "routers")
        if not chosen:
            return self.nobody()
        for r in chosen:
            self.later(self.again, r)
            r.signal(signal.SIGTERM)
        return {"hosts": names(chosen), "excuses": False,
                "text": "SIGTERM to %s, and so a drain; started again after that"
                % plural(names(chosen))}

    @staticmethod
    def again(router):
        router.wait(60)
        start_again(router)


class _Pause(Nemesis):
    kind = None
    more = {}

    def start(self, service, rng):
        chosen = self.some(service, rng, self.kind)
        if not chosen:
            return self.nobody()
        for p in chosen:
            self.later(p.signal, signal.SIGCONT)
            p.signal(signal.SIGSTOP)
        return {"hosts": names(chosen), "serves": True, **self.more,
                "text": "SIGSTOP to %s; SIGCONT at the end" % plural(names(chosen))}


class Pause(_Pause):
    """SIGSTOP to routers for 0.1 to 6 s, then SIGCONT."""
    name, kind = "pause", "routers"
    seconds = (0.1, 6)


class PauseLong(_Pause):
    """SIGSTOP to routers for 15 to 60 s, then SIGCONT."""
    name, kind = "pause-long", "routers"
    seconds = (15, 60)
    least_run = 600


class PauseEngine(_Pause):
    """SIGSTOP to engines for 0.1 to 8 s, then SIGCONT."""
    name, kind = "pause-engine", "engines"
    seconds = (0.1, 8)
    more = {"pauses": True}


class Stutter(Nemesis):
    """Routers and an engine are stopped for moments, again and again, like machines without a processor."""
    name = "stutter"
    seconds = (3, 10)

    def start(self, service, rng):
        chosen = self.some(service, rng, "routers") + self.some(service, rng, "engines", 1)
        if not chosen:
            return self.nobody()
        stop_s, go_s = rng.uniform(0.1, 1.0), rng.uniform(0.05, 0.4)
        for p in chosen:
            self.later(p.signal, signal.SIGCONT)
        self.background(self.run, chosen, stop_s, go_s)
        return {"hosts": names(chosen), "serves": True,
                "text": "%s: SIGSTOP for %d ms, SIGCONT for %d ms, again and again"
                % (plural(names(chosen)), stop_s * 1000, go_s * 1000)}

    def run(self, chosen, stop_s, go_s):
        while not self.over.is_set():
            for p in chosen:
                p.signal(signal.SIGSTOP)
            self.over.wait(stop_s)
            for p in chosen:
                p.signal(signal.SIGCONT)
            self.over.wait(go_s)


def stands(pid):
    """True if a signal has stopped a process."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False


def built(variant):
    """The folder of another build of the router, or None."""
    folder = os.path.join(TOP, "build", variant)
    return folder if os.access(os.path.join(folder, "grapevine"), os.X_OK) else None
