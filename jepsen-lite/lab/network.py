"""The wire between machines, as faults see it. wire/wire.c carries the packets and has the settings.

Each fault has a Layer of its own. All layers together decide what happens between two machines, so the repair of one
fault leaves other faults unchanged.
"""

import subprocess
import threading

SHARES = ("loss", "duplicate", "reorder", "corrupt")
SUMS = ("delay_ms", "jitter_ms")
LEAST = ("rate_kbit", "mtu")


def together(settings):
    """The settings of one link by several layers, as one."""
    out = {}
    for s in settings:
        for name, value in s.items():
            if not value:
                continue
            old = out.get(name)
            if name in SHARES:
                value = 1 - (1 - (old or 0)) * (1 - value)
            elif name in SUMS:
                value += old or 0
            elif name in LEAST and old:
                value = min(value, old)
            out[name] = value
    return out


class Wire:
    def __init__(self, program, seed, log):
        self.lock = threading.RLock()
        self.layers = []
        self.names = []
        self.log = log
        with open(log, "ab") as err:
            self.process = subprocess.Popen([program, "--seed", str(seed)], stdin=subprocess.PIPE, text=True, bufsize=1,
                                            stdout=subprocess.PIPE, stderr=err, start_new_session=True)
        self.base = self.layer()

    def say(self, *words):
        with self.lock:
            self.process.stdin.write(" ".join(str(w) for w in words) + "\n")
            answer = self.process.stdout.readline().split()
        if not answer or answer[0] != "ok":
            raise OSError("wire: %s: %s" % (" ".join(str(w) for w in words), " ".join(answer) or "it has ended"))
        return answer[1:]

    def machine(self, name, namespace, address):
        self.say("machine", name, namespace, address)
        self.names.append(name)

    def address(self, name, address):
        self.say("address", name, address)

    def layer(self):
        layer = Layer(self)
        with self.lock:
            self.layers.append(layer)
        return layer

    def remove(self, layer):
        layer.heal()
        with self.lock:
            self.layers.remove(layer)

    def update(self, pairs):
        with self.lock:
            for a, b in pairs:
                all_of_it = together([layer.links.get((a, b), {}) for layer in self.layers])
                self.say("link", a, b, *("%s=%g" % item for item in sorted(all_of_it.items())))

    def capture(self, path, began, everything=False):
        self.say("capture", path, "all" if everything else "gossip", "%.6f" % began)

    def inject(self, name, packet):
        self.say("inject", name, packet.hex())

    def flush(self):
        self.say("flush")

    def stats(self):
        return {name: int(value) for name, value in (word.split("=") for word in self.say("stats"))}

    def stalls(self):
        """[(from, to)] by time.monotonic(): when no packet moved, because the machine on which all runs was busy."""
        with open(self.log, encoding="utf-8") as f:
            words = [line.split() for line in f if line.startswith("stalled ")]
        return [(float(begin), float(end)) for _, begin, end in words]


class Layer:
    """The effect of one fault. `a` and `b` are names of machines, or lists of such."""

    def __init__(self, wire):
        self.wire = wire
        self.links = {}  # (from, to) -> settings

    @staticmethod
    def pairs(a, b, one_way):
        a, b = ([x] if isinstance(x, str) else list(x) for x in (a, b))
        out = [(x, y) for x in a for y in b if x != y]
        return out if one_way else out + [(y, x) for x, y in out]

    def link(self, a, b, one_way=False, **settings):
        """Settings that are not named keep their value in this layer."""
        pairs = self.pairs(a, b, one_way)
        with self.wire.lock:
            for pair in pairs:
                self.links.setdefault(pair, {}).update(settings)
            self.wire.update(pairs)

    def cut(self, a, b, one_way=False):
        self.link(a, b, one_way, cut=1)

    def mend(self, a, b, one_way=False):
        pairs = self.pairs(a, b, one_way)
        with self.wire.lock:
            for pair in pairs:
                self.links.pop(pair, None)
            self.wire.update(pairs)

    def heal(self):
        with self.wire.lock:
            pairs = list(self.links)
            self.links.clear()
            self.wire.update(pairs)

    @property
    def names(self):
        """Names of all machines."""
        return list(self.wire.names)

    def capture(self, path, began=0, everything=False):
        self.wire.capture(path, began, everything)

    def inject(self, name, packet):
        """Delivers this IPv4 packet to the machine, whatever its source."""
        self.wire.inject(name, packet)

    def flush(self):
        self.wire.flush()

    def stats(self):
        return self.wire.stats()
