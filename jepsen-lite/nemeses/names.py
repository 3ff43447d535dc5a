"""A name server that lies, fails or is slow. Here routers find engines and each other by name."""

import os
import shutil
import signal
import sys
import time

from .base import TOP, Nemesis, names, plural, shared
from .process import start_again

sys.path.append(os.path.join(TOP, "tests", "e2e"))
from lib_dns import Dns, read_question  # noqa: E402

ENGINES, ROUTERS = "engines.jepsen", "routers.jepsen"
SPARES = ("spare1.jepsen", "spare2.jepsen")  # engines and routers that do not exist yet: names without addresses
NOBODY = "10.77.250.250"
EVERY = "500ms"


def by_name(command, engines_port, gossip_port, server):
    """A router's command with names in the place of addresses."""
    out, words = [], iter(command)
    for word in words:
        if word in ("--join", "--replica"):
            next(words)
        else:
            out.append(word)
    for engines, routers in (*zip(SPARES, SPARES), (ENGINES, ROUTERS)):
        out += ["--join", "%s:%d" % (routers, gossip_port), "--replica-dns", "%s:%d" % (engines, engines_port)]
    return out + ["--replica-dns-interval", EVERY, "--dns-server", server]


class Names(Dns):
    """The server, on a machine of its own. It knows the addresses of all; faults change `mode`, `left_out`, `more`,
    `delay_s` and `silent` (names), of which one at a time has a fault."""

    def __init__(self, service):
        self.service, self.left_out, self.more, self.delay_s, self.silent = service, [], [], 0, ()
        host = service.spare("ns")
        with host.inside():
            super().__init__({}, host.address, 53)
        conf = os.path.join(service.folder, "resolv.conf")
        with open(conf, "w") as f:
            f.write("nameserver %s\noptions timeout:1 attempts:2\n" % host.address)
        for r in service.routers:
            r.wrap += ["unshare", "--mount", "sh", "-c", 'mount --bind %s /etc/resolv.conf && exec "$@"' % conf, "sh"]
            r.command = self.named(r.command, service.engines[0].port, r.gossip_port, host.address)

    @staticmethod
    def named(command, *args):
        return lambda build: by_name(command(build), *args)

    def answer(self, query, protocol):
        self.records = {
            ENGINES: {"A": [e.address for e in self.service.engines if e.name not in self.left_out] + self.more},
            ROUTERS: {"A": [r.address for r in self.service.routers]}, **{name: {} for name in SPARES}}
        del self.asked[:]
        if read_question(query)[0] in self.silent:
            return None
        if self.delay_s:
            time.sleep(self.delay_s)
        return super().answer(query, protocol)

    def well(self):
        self.mode, self.left_out, self.more, self.delay_s, self.silent = None, [], [], 0, ()


class _Names(Nemesis):
    seconds = (3, 15)

    @staticmethod
    def missing():
        return None if shutil.which("unshare") else "unshare (Debian: util-linux)"

    def prepare(self, service):
        shared(service, Names, service)

    def server(self, service):
        """The server, or None if another fault of this kind uses it."""
        server = shared(service, Names, service)
        if server.mode or server.left_out or server.more or server.delay_s or server.silent:
            return None
        self.later(server.well)
        return server


class Lie(_Names):
    """The name server leaves engines out, and names a router or nobody as one.

    A router keeps a name that is gone for 30 s (docs/how-to/discovery.md), as one that drains or is down."""
    name = "dns-lie"

    def start(self, service, rng):
        server = self.server(service)
        if server is None:
            return self.nobody()
        server.left_out = names(self.some(service, rng, "engines")) if rng.random() < 0.7 else []
        router = rng.choice(service.routers)
        server.more = rng.choice(([], [NOBODY], [router.address])) if server.left_out else [NOBODY, router.address]
        return {"hosts": ["ns"] + server.left_out, "left_out": server.left_out, "more": server.more,
                "harmless": not server.left_out,
                "text": "the name server leaves out %s and adds %s" % (
                    plural(server.left_out) if server.left_out else "nobody",
                    plural(server.more) if server.more else "nothing")}


class Fail(_Names):
    """The name server fails, refuses, is silent, or knows nothing."""
    name = "dns-fail"

    def start(self, service, rng):
        server = self.server(service)
        if server is None:
            return self.nobody()
        server.mode, said = rng.choice((("servfail", "fails"), ("refused", "refuses"), ("silent", "is silent"),
                                       ("nxdomain", "knows no name"), ("empty", "knows names and no addresses")))
        return {"hosts": ["ns"], "harmless": True, "text": "the name server %s" % said}


class Slow(_Names):
    """The name server takes 0.5 to 4 s for each question."""
    name = "dns-slow"

    def start(self, service, rng):
        server = self.server(service)
        if server is None:
            return self.nobody()
        server.delay_s = rng.uniform(0.5, 4)
        return {"hosts": ["ns"], "harmless": True,
                "text": "the name server takes %.1f s for each question, one after the other" % server.delay_s}


class Silent(_Names):
    """The name server answers nothing for some names, and a router starts: the other names serve it at once."""
    name = "dns-silent"
    seconds = (6, 15)
    WHICH = (("of machines to come", SPARES), ("of engines", (*SPARES, ENGINES)), ("of routers", (*SPARES, ROUTERS)))

    def start(self, service, rng):
        server = self.server(service)
        if server is None:
            return self.nobody()
        chosen = self.some(service, rng, "routers", 1)
        said, server.silent = rng.choice(self.WHICH)
        for router in chosen:
            self.later(start_again, router)
            router.signal(signal.SIGKILL)
            router.wait(10)
            router.start()
        # A router without seeds is called by the others: that takes a moment.
        seeds = ROUTERS in server.silent
        return {"hosts": ["ns"] + names(chosen), "excuses": seeds, "harmless": seeds, "text": "the name server answers nothing for names %s%s" % (
            said, "; %s is killed, and starts so" % plural(names(chosen)) if chosen else "")}
