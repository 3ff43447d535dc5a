"""Rules of a firewall on the machines of engines: resets, closed and silent ports, what a firewall forgets.

Clients do not talk to engines, so the router has to hide failures there. A machine's own loopback is left alone:
the lab speaks to processes by it. Each fault has a table of its own, so that two on one machine do not meet."""

import os
import shutil
import socket
import struct

from .base import Nemesis, names, plural

PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
CHAIN = """table inet %(table)s {
  chain in {
    type filter hook input priority %(priority)d; policy accept;
    iif lo accept
    %(rules)s
  }
}
"""


class Packets(Nemesis):
    """Puts rules before what comes in."""
    seconds = (2, 8)

    @staticmethod
    def missing():
        return None if shutil.which("nft", path=PATH) else "nft (Debian: nftables)"

    @property
    def table(self):
        return "jepsen_" + self.name.replace("-", "_")

    def rules(self, host, text, priority=0):
        self.later(self.remove, host)
        host.nft(CHAIN % {"table": self.table, "priority": priority, "rules": text})

    def remove(self, host):
        host.nft("table inet %s\ndelete table inet %s\n" % (self.table, self.table))


class Reset(Packets):
    """One in some packets to an engine is answered by a reset; both ends then know no connection."""
    name = "reset"

    def start(self, service, rng):
        chosen = self.some(service, rng, "engines")
        if not chosen:
            return self.nobody()
        one_in = rng.choice((3, 10, 40))
        for e in chosen:
            self.rules(e.host, "tcp dport %d tcp flags & rst == 0 numgen random mod %d == 0 reject with tcp reset"
                       % (e.port, one_in))
        return {"hosts": names(chosen),
                "text": "one in %d packets to %s resets its connection" % (one_in, plural(names(chosen)))}


class Refuse(Packets):
    """The port of an engine refuses new connections, as if nothing listened; open ones go on."""
    name = "refuse"

    def start(self, service, rng):
        chosen = self.some(service, rng, "engines")
        if not chosen:
            return self.nobody()
        for e in chosen:
            self.rules(e.host, "tcp dport %d tcp flags & (syn | ack) == syn reject with tcp reset" % e.port)
        return {"hosts": names(chosen),
                "text": "%s: new connections are refused" % plural(names(chosen))}


class BlackHole(Packets):
    """Packets to the port of an engine vanish: all of them, or those of new connections."""
    name = "black-hole"

    def start(self, service, rng):
        chosen = self.some(service, rng, "engines")
        if not chosen:
            return self.nobody()
        new = rng.random() < 0.5
        for e in chosen:
            self.rules(e.host, "tcp dport %d %sdrop" % (e.port, "tcp flags & (syn | ack) == syn " if new else ""))
        return {"hosts": names(chosen), "serves": True, "text": "%s: %s vanish silently" % (
            plural(names(chosen)), "new connections" if new else "all packets")}


NETLINK_NETFILTER, CTNETLINK_DELETE, REQUEST_ACK = 12, (1 << 8) | 2, 1 | 4


def flush_connections(host):
    """As `conntrack -F`: the kernel of that machine forgets all connections."""
    with host.inside():
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER) as s:
            s.settimeout(5)
            s.send(struct.pack("=IHHIIBBH", 20, CTNETLINK_DELETE, REQUEST_ACK, 1, 0, 0, 0, 0))
            error = struct.unpack_from("=i", s.recv(4096), 16)[0]
    if error != 0:
        raise OSError(-error, "the connections of %s could not be forgotten" % host.name)


class Conntrack(Packets):
    """The firewall of an engine forgets its connections, again and again: they go silent.

    It lets in only what it saw begin."""
    name = "conntrack"

    def start(self, service, rng):
        chosen = self.some(service, rng, "engines")
        if not chosen:
            return self.nobody()
        every_s = rng.uniform(0.5, 2)
        for e in chosen:
            self.rules(e.host, "tcp dport %d ct state new tcp flags & (syn | ack) != syn drop" % e.port)
        self.background(self.flush, [e.host for e in chosen], every_s)
        return {"hosts": names(chosen), "serves": True,
                "text": "the firewall of %s forgets all connections every %.1f s" % (plural(names(chosen)), every_s)}

    def flush(self, hosts, every_s):
        while not self.over.wait(every_s):
            for host in hosts:
                flush_connections(host)


class Mtu(Nemesis):
    """Packets have 1,280 bytes at most: all machines know it, or longer ones vanish silently."""
    name = "mtu"
    seconds = (3, 12)

    def start(self, service, rng):
        if rng.random() < 0.5:
            machines = service.routers + service.engines
            for p in machines:
                self.later(set_mtu, p.host, mtu(p.host))
                set_mtu(p.host, 1280)
            everybody = sorted(p.name for p in machines)
            return {"hosts": everybody, "harmless": True,
                    "text": "packets of 1,280 bytes at most leave all routers and engines"}
        chosen = [p.name for p in self.some(service, rng, "engines")]
        if not chosen:
            return self.nobody()
        self.wire(service).link(chosen, names(service.routers), mtu=1280)
        return {"hosts": chosen, "serves": True,
                "text": "packets of more than 1,280 bytes to and from %s vanish" % plural(chosen)}


def mtu(host):
    return int(host.run("ip", "-o", "link", "show", "eth0").split(" mtu ")[1].split()[0])


def set_mtu(host, bytes):
    host.run("ip", "link", "set", "eth0", "mtu", str(bytes))
