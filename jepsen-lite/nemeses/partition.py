"""Cut links. Clients and the balancer reach every router as ever: what fails then is not the client's own link."""

from .base import Nemesis, names, plural
from .victims import across, halves, ring


class _Partition(Nemesis):
    seconds = (3, 10)

    def start(self, service, rng):
        links, said = self.cuts(names(service.routers), names(service.engines), rng)
        if not links:
            return self.nobody()
        wire = self.wire(service)
        for a, b in links:
            wire.cut(a, b, self.one_way)
        return {"hosts": sorted({n for pair in links for n in pair}), "links": [list(p) for p in links],
                "one_way": self.one_way, "serves": True, "text": said}

    one_way = False

    def cuts(self, routers, engines, rng):
        raise NotImplementedError


class Halves(_Partition):
    """Two sides of routers, or of routers and engines; each side has at least one of either."""
    name = "partition-halves"

    def cuts(self, routers, engines, rng):
        if len(routers) < 2:
            return [], ""
        with_engines = len(engines) > 1 and rng.random() < 0.5
        one, other = halves(rng, routers, engines if with_engines else [])
        return across(one, other), "%s cut off from %s" % (plural(one), plural(other))


class Alone(_Partition):
    """A router that reaches no other router, or an engine that no router reaches."""
    name = "partition-one"

    def cuts(self, routers, engines, rng):
        if len(engines) > 1 and rng.random() < 0.5:
            one = rng.choice(engines)
            return across([one], routers), "%s cut off from all routers" % one
        if len(routers) < 2:
            return [], ""
        one = rng.choice(routers)
        return across([one], [r for r in routers if r != one]), "%s cut off from all other routers" % one


class Bridge(_Partition):
    """Two sides of routers that meet in one."""
    name = "partition-bridge"

    def cuts(self, routers, engines, rng):
        if len(routers) < 3:
            return [], ""
        middle = rng.choice(routers)
        one, other = halves(rng, [r for r in routers if r != middle], [])
        return across(one, other), "%s and %s meet in %s alone" % (plural(one), plural(other), middle)


class Ring(_Partition):
    """Each router reaches its two neighbours alone."""
    name = "partition-ring"

    def cuts(self, routers, engines, rng):
        return ring(rng, routers), "each router reaches two others alone"


class OneWay(_Partition):
    """A router's outgoing packets are lost and incoming ones arrive, or the other way round."""
    name = "partition-one-way"
    one_way = True

    def cuts(self, routers, engines, rng):
        if len(routers) < 2:
            return [], ""
        one = rng.choice(routers)
        others = [r for r in routers if r != one]
        if rng.random() < 0.5:
            return across([one], others), "other routers hear nothing from %s, which hears them" % one
        return across(others, [one]), "%s hears nothing from other routers, which hear it" % one
