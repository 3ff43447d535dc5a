"""A wire that loses, delays, repeats, reorders, damages, or is slow: mildly between all, or badly around some."""

from .base import Nemesis, plural


class _Poor(Nemesis):
    seconds = (3, 12)
    mild = hard = None  # {setting: (least, most)}
    what = ""

    def start(self, service, rng):
        everywhere = rng.random() < 0.5
        ranges = self.mild if everywhere else self.hard
        settings = {n: round(rng.uniform(*r), 4) for n, r in ranges.items()}
        machines = [p.name for p in service.routers + service.engines + service.clients + [service.balancer]]
        if everywhere:
            sick = machines
        else:
            sick = [p.name for p in self.some(service, rng, "routers") + self.some(service, rng, "engines", 1)]
        if not sick:
            return self.nobody()
        wire, well = self.wire(service), [n for n in machines if n not in sick]
        wire.link(sick, sick, one_way=True, **settings)
        wire.link(sick, well, **settings)
        pairs = sorted({tuple(sorted((a, b))) for a in sick for b in machines if a != b})
        told = ", ".join("%s %s" % (n, settings[n]) for n in settings)
        return {"hosts": sorted(sick), "links": [list(p) for p in pairs], "settings": settings, "harmless": everywhere,
                "text": "%s (%s) %s" % (self.what, told, "between all" if everywhere else "around " + plural(sick))}


class Loss(_Poor):
    """0.5 to 3 % of packets are lost between all, or 10 to 30 % around some."""
    name, what = "loss", "packets are lost"
    mild, hard = {"loss": (0.005, 0.03)}, {"loss": (0.1, 0.3)}


class Delay(_Poor):
    """Packets are 5 to 40 ms late between all, or 100 to 400 ms around some."""
    name, what = "delay", "packets are late"
    mild, hard = {"delay_ms": (5, 40)}, {"delay_ms": (100, 400)}


class Jitter(_Poor):
    """Packets are late, each by something else."""
    name, what = "jitter", "packets are late, each by something else"
    mild, hard = {"delay_ms": (2, 10), "jitter_ms": (2, 10)}, {"delay_ms": (50, 200), "jitter_ms": (50, 200)}


class Duplicate(_Poor):
    """2 to 10 % of packets come twice between all, or 30 to 90 % around some."""
    name, what = "duplicate", "packets come twice"
    mild, hard = {"duplicate": (0.02, 0.1)}, {"duplicate": (0.3, 0.9)}


class Reorder(_Poor):
    """Packets are overtaken by others."""
    name, what = "reorder", "packets overtake others"
    mild, hard = {"reorder": (0.02, 0.1), "delay_ms": (2, 10)}, {"reorder": (0.2, 0.5), "delay_ms": (10, 50)}


class Corrupt(_Poor):
    """A bit is flipped in 0.5 to 2 % of packets between all, or in 5 to 20 % around some."""
    name, what = "corrupt", "packets are damaged"
    mild, hard = {"corrupt": (0.005, 0.02)}, {"corrupt": (0.05, 0.2)}


class Rate(_Poor):
    """The wire carries 4 to 20 Mbit/s between all, or 256 to 1,024 kbit/s around some."""
    name, what = "rate", "the wire is slow"
    mild, hard = {"rate_kbit": (4000, 20000)}, {"rate_kbit": (256, 1024)}
