"""A whole service on its own machines, with its operations for faults and workloads."""

import copy
import os
import shutil
import signal
import subprocess
import time

from . import other, parts
from .follow import Follower
from .host import Host
from .network import Wire
from .ready import Watch

ROUTERS, ENGINES, BALANCER, CLIENTS, SPARE = 1, 2, 3, 4, 5
UP_S = 30


def address(room, number):
    return "10.77.%d.%d" % (room, number)


class Options:
    """The parts of a service. All have defaults."""

    def __init__(self, **given):
        self.build = "build"
        self.routers, self.engines, self.clients = 3, 4, 1
        self.seed = 1
        self.bug = ""
        self.command = ""       # another proxy in the routers' place
        self.stop_signal = signal.SIGTERM
        self.router_args = []
        self.engine_args = ["--speed-up", "10"]
        self.habits = {}        # engines' habits, by name (habits.py)
        self.__dict__.update(given)


class Service:
    def __init__(self, options, recorder, folder):
        self.options, self.recorder, self.folder = options, recorder, os.path.abspath(folder)
        self.build = os.path.abspath(options.build)
        for sub in ("logs", "journals"):
            os.makedirs(os.path.join(self.folder, sub), exist_ok=True)
        self.key_file = os.path.join(self.folder, "cluster.key")
        subprocess.run([os.path.join(self.build, "gvctl"), "keygen", "--out", self.key_file], check=True,
                       stdout=subprocess.DEVNULL)
        self.whole_wire = Wire(os.path.join(self.build, "tests/wire"), options.seed,
                               os.path.join(self.folder, "logs", "wire.log"))
        self.wire = self.whole_wire.base
        self.hosts = {}
        self.follower, self.watch = Follower(recorder), None
        router = other.Other if options.command else parts.Router
        self.routers = [router(self, self.machine("r%d" % i, ROUTERS, i)) for i in range(1, options.routers + 1)]
        self.engines = [parts.Engine(self, self.machine("e%d" % i, ENGINES, i)) for i in range(1, options.engines + 1)]
        self.balancer = parts.Balancer(self, self.machine("lb", BALANCER, 1))
        self.clients = [self.machine("c%d" % i, CLIENTS, i) for i in range(1, options.clients + 1)]

    def machine(self, name, room, number):
        self.hosts[name] = Host(name, address(room, number), self.whole_wire)
        return self.hosts[name]

    def spare(self, name):
        """One more machine."""
        return self.machine(name, SPARE, 1 + sum(1 for h in self.hosts.values() if h.address.startswith("10.77.5.")))

    def follow(self, process):
        self.follower.add(process.name, process.log)
        if isinstance(process, parts.Engine):
            self.follower.add(process.name, process.journal, journal=True)

    @property
    def processes(self):
        return self.engines + self.routers + [self.balancer]

    def start(self):
        """All of it, until every router can serve."""
        self.follower.start()
        for p in self.processes:
            p.start()
        limit = time.monotonic() + UP_S
        while not all(self.ready(r) for r in self.routers):
            for p in self.processes:
                if not p.alive:
                    raise OSError("%s ended at its start: %s" % (p.name, p.log))
            if time.monotonic() > limit:
                raise OSError("not ready after %d s: %s" % (UP_S, [r.name for r in self.routers if not self.ready(r)]))
            time.sleep(0.02)
        if not self.options.command:
            self.watch = Watch(self.routers, self.recorder)
            self.watch.start()

    @staticmethod
    def ready(router):
        try:
            return router.admin("GET", "/readyz", timeout=2)[0] == 200
        except OSError:
            return False

    def stop(self):
        """Ends all processes, as Ctrl-C does. What does not end in 5 s is killed; the history has its status."""
        if self.watch is not None:
            self.watch.stop()
        self.recorder.event("lab", "stop")
        for p in self.processes:
            p.signal(signal.SIGCONT)
            p.signal(signal.SIGINT)
        limit = time.monotonic() + 5
        for p in self.processes:
            if p.alive and not p.ended.wait(max(0, limit - time.monotonic())):
                p.signal(signal.SIGKILL)
                p.ended.wait()
        self.follower.stop()
        for p in self.routers:
            kept = os.path.join(self.folder, "logs", p.name + ".log")
            if p.log != kept:  # it was on a small disk, which is gone with the run
                shutil.copyfile(p.log, kept)
        self.whole_wire.process.stdin.close()
        self.whole_wire.process.wait()
        if os.path.exists(self.key_file):
            os.unlink(self.key_file)

    # --- for workloads and nemeses ----------------------------------------------------------------

    def with_clients(self, clients):
        """The same service, whose clients are only these."""
        view = copy.copy(self)
        view.clients = clients
        return view

    def with_layer(self):
        """The same service, whose wire is a layer of its own: the effects of one fault can be repaired alone."""
        view = copy.copy(self)
        view.wire = self.whole_wire.layer()
        return view

    def anyone(self, rng):
        r = rng.choice(self.routers)
        return r.name, r.address, r.port

    @property
    def by_balancer(self):
        return self.balancer.name, self.balancer.address, self.balancer.port


__all__ = ["Options", "Service"]
