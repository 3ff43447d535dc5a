"""Machines that are somewhere else after a restart: routers keep their name, engines are renewed under another one."""

import itertools
import signal
import time

from .base import Nemesis, shared


class Addresses:
    """Addresses that were unused so far."""

    def __init__(self):
        self.numbers = itertools.count(1)

    def fresh(self):
        number = next(self.numbers)
        return "10.77.%d.%d" % (100 + number // 250, 1 + number % 250)


class MoveRouter(Nemesis):
    """A router ends and starts again at another address, under its name; back at the end.

    As a pod that is rescheduled. The balancer knows its old address only."""
    name = "move-router"
    seconds = (8, 14)

    def start(self, service, rng):
        chosen = self.some(service, rng, "routers", 1)
        if not chosen:
            return self.nobody()
        router, old, new = chosen[0], chosen[0].address, shared(service, Addresses).fresh()
        self.later(self.move, router, old)
        self.move(router, new)
        return {"hosts": [router.name], "address": new, "text": "%s ends and starts again at the address %s, not %s"
                % (router.name, new, old)}

    @staticmethod
    def move(router, address):
        router.signal(signal.SIGTERM)
        if router.wait(40) is None:
            router.kill()
        if router.address != address:
            router.host.move(address)
        router.start()


def told(service, method, replica, limit_s=10):
    """Sends it to the first router that accepts it."""
    limit = time.monotonic() + limit_s
    while time.monotonic() < limit:
        for r in service.routers:
            try:
                if r.alive and r.admin(method, "/replicas?replica=" + replica, timeout=1)[0] == 200:
                    return r.name
            except OSError:
                pass
        time.sleep(0.1)
    raise OSError("no router took %s of %s" % (method, replica))


class RenewEngine(Nemesis):
    """An engine comes back under another name; the old one is removed, the new one added, for good."""
    name = "renew-engine"
    seconds = (3, 8)

    def start(self, service, rng):
        chosen = self.some(service, rng, "engines", 1)
        if not chosen:
            return self.nobody()
        engine, new = chosen[0], shared(service, Addresses).fresh()
        old_name, new_name = ["%s:%d" % (a, engine.port) for a in (engine.address, new)]
        self.later(self.whole, service, engine, old_name, new_name)
        first = rng.choice(("remove", "end"))
        if first == "remove":
            told(service, "DELETE", old_name)
            time.sleep(0.5)
        engine.kill()
        engine.host.move(new)
        return {"hosts": [engine.name], "removed": old_name, "added": new_name, "removed_first": first == "remove",
                "text": "%s ends and comes back as %s; %s is removed" % (engine.name, new_name, old_name)}

    @staticmethod
    def whole(service, engine, old_name, new_name):
        if engine.address + ":%d" % engine.port != new_name:
            engine.host.move(new_name.rpartition(":")[0])
        if not engine.alive:
            engine.start()
        told(service, "DELETE", old_name)
        told(service, "POST", new_name)


