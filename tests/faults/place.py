"""Places of a fleet's engines: beside the routers, a round trip away, behind names, on a router's own loopback.

All but the first needs the driver's own namespaces (fleet.own_network()).
"""

import os
import subprocess
import tempfile
import threading
import time

from lib_dns import Dns
from wire import FAR, NEAR, Wire

HOST = "127.0.0.1"
OTHER = "10.98.0.2"       # the engine's next address, to which a name moves
RESOLVER = "127.0.0.53"
ZONE = "lab.test"


class Names(Dns):
    """A DNS server that is silent about some names, or all, or answers late."""

    def __init__(self):
        self.silent = set()
        self.late = 0.0
        super().__init__({}, host=RESOLVER, port=53)

    def answer(self, query, protocol):
        reply = super().answer(query, protocol)
        return None if self.asked[-1][0] in self.silent else reply

    def _serve_udp(self):
        while not self.stopping:
            try:
                query, peer = self.udp.recvfrom(4096)
            except OSError:
                return
            if len(query) < 17:  # the socket was shut down
                continue
            threading.Thread(target=self._reply, args=(query, peer), daemon=True).start()

    def _reply(self, query, peer):
        time.sleep(self.late)
        try:
            reply = self.answer(query, "udp")
            if reply is not None:
                self.udp.sendto(reply, peer)
        except OSError:
            pass  # the server has ended


class Place:
    """Beside the routers. `rtt`: milliseconds from there to the engines and back; `named`: replicas are given by names,
    whose server answers after `late` seconds; `silent`: so many more replicas have names of which it says nothing."""

    host = gossip = HOST

    def __init__(self, rtt=None, named=False, late=0.0, silent=0):
        self.rtt, self.named, self.late = rtt, named, late
        self.mute = ["silent%d.%s" % (i, ZONE) for i in range(silent)]
        self.wire = self.dns = None
        if rtt is not None or named:
            self.host = NEAR

    def __str__(self):
        words = ["a round trip of %d ms" % self.rtt if self.rtt else ""]
        words += ["by name"] if self.named else []
        words += ["that comes %.1f s late" % self.late] if self.late else []
        words += ["%d silent names" % len(self.mute)] if self.mute else []
        return ", ".join(w for w in words if w) or "near"

    def begin(self, fleet):
        """The engines run; the routers do not yet."""
        address = NEAR
        if self.rtt is not None:
            self.wire = Wire()
            self.wire.rtt(self.rtt)
            address = FAR
        for i, e in enumerate(fleet.engines):
            e.name = "%s:%d" % ("e%d.%s" % (i, ZONE) if self.named else address if self.host == NEAR else HOST, e.port)
        if self.named:
            resolve_here()
            self.dns = Names()
            self.dns.late = self.late
            self.dns.records.update({"e%d.%s" % (i, ZONE): {"A": [address]} for i in range(len(fleet.engines))})
            self.dns.silent.update(self.mute)

    def replicas(self, fleet, router):
        """That router's list of replicas."""
        return ["http://%s:8000" % name for name in self.mute] + ["http://" + e.name for e in fleet.engines]

    def all_up(self, fleet, router, up):
        """True if that router sees every possible replica up."""
        return sum(up) == len(fleet.engines) == len(up) - len(self.mute)

    def end(self):
        """Everything has ended."""
        if self.wire is not None:
            self.wire.stop()
        if self.dns is not None:
            self.dns.stop()


class Loopback(Place):
    """The first engines are on the routers' own loopbacks, one each; the others are shared. Routers meet by an address
    that is no loopback, as those of several machines do."""

    gossip = NEAR

    def begin(self, fleet):
        self.own = len(fleet.engines) // 2  # routers have one each; more than the routers are never named
        for e in fleet.engines[self.own:]:
            e.stop()
        fleet.engines[self.own:] = [type(e)(*e.args, host=NEAR) for e in fleet.engines[self.own:]]

    def replicas(self, fleet, router):
        return ["http://" + e.name for e in [fleet.engines[router]] + fleet.engines[self.own:]]

    def all_up(self, fleet, router, up):
        return sum(up) >= 1 + len(fleet.engines) - self.own  # more: strangers, which the row counts


resolving = []


def resolve_here():
    """The server is what the system asks, for all that begins in the driver's mount namespace from now on."""
    if resolving:
        return
    resolving.append(RESOLVER)
    conf = os.path.join(tempfile.gettempdir(), "faults-resolv-%d" % os.getpid())
    with open(conf, "w") as f:
        f.write("nameserver %s\n" % RESOLVER)
    subprocess.run(["mount", "--bind", conf, "/etc/resolv.conf"], check=True)
    os.unlink(conf)


def works():
    """True if packets can be carried in user space here."""
    wire = Wire()
    wire.stop()
    return wire.works
