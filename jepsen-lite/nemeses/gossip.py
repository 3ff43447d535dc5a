"""A firewall between routers that lets one of the two protocols of the gossip port through, and not the other."""

import signal

from .packets import Packets
from .process import start_again

DROPS = "drop", "vanishes"
REJECTS = {"tcp": ("reject with tcp reset", "is answered by resets"),
           "udp": ("reject with icmp type port-unreachable", "is answered by ICMP")}


class _Gossip(Packets):
    """Rules at the router and, for its outgoing packets, at all others, because a sender would notice its own
    firewall."""
    seconds = (3, 12)
    protocol = None

    def start(self, service, rng):
        chosen = self.some(service, rng, "routers", 1)
        if not chosen:
            return self.nobody()
        router = chosen[0]
        verdict, said = rng.choice((DROPS, REJECTS[self.protocol]))
        self.filter(service, router, verdict)
        return {"hosts": [router.name], "harmless": True, "protocol": self.protocol, "text": "%s from and to the gossip port "
                "of %s %s" % (self.protocol.upper(), router.name, said)}

    def filter(self, service, router, verdict):
        to = "%s dport %d %s" % (self.protocol, router.gossip_port, verdict)
        self.rules(router.host, to)
        for other in service.routers:
            if other is not router:
                self.rules(other.host, "ip saddr %s %s" % (router.address, to))


class Tcp(_Gossip):
    """TCP between the gossip ports of a router and of all others is dropped or refused; UDP is not."""
    name, protocol = "gossip-tcp", "tcp"


class Udp(_Gossip):
    """UDP between the gossip ports of a router and of all others is dropped or refused; TCP is not."""
    name, protocol = "gossip-udp", "udp"


class Join(_Gossip):
    """A router starts on a machine with a gossip port open for UDP only: it serves all the same.

    The time until it is ready excuses failures; the checker `ready` requires that it is ready in time."""
    name, protocol = "gossip-join", "tcp"
    seconds = (17, 20)

    def start(self, service, rng):
        about = super().start(service, rng)
        for router in service.routers:
            if router.name in about["hosts"]:
                self.later(start_again, router)
                router.signal(signal.SIGKILL)
                router.wait(10)
                router.start()
                about.update(harmless=False, text=about["text"] + "; it is killed, and starts so")
        return about
