"""A member of the cluster that is no router of this service: it lies, and dies."""

from checkers.naming import LIAR, LIES_S
from lab.parts import Router

from .base import Nemesis, names, plural, shared
from .process import built

AGAIN_S = LIES_S + 15  # its names have to go before they are announced again
NAMES = ["10.77.251.%d" % i for i in range(1, 256)]  # the names of node/cluster/lie.c


class Liar(Router):
    """With the bug LIES, on a machine of its own. No client and no balancer knows it."""

    def about(self):
        return dict(super().about(), bug="LIES")


def liar(service):
    out = Liar(service, service.spare(LIAR))
    out.env["BUG"] = "LIES"
    out.build = built("lab")
    return out


class Lies(Nemesis):
    """A member joins, announces names that are no replicas or that nobody runs, and false loads, and dies."""
    name = "member-lies"
    seconds = (5, 12)
    died = 0

    def prepare(self, service):
        shared(service, liar, service)

    @staticmethod
    def missing():
        return None if built("lab") else "build/lab/grapevine (make build-lab)"

    def start(self, service, rng):
        member = shared(service, liar, service)
        if member.life and service.recorder.now() < self.died + AGAIN_S:
            return self.nobody()
        self.later(self.die, member)
        member.start()
        return {"hosts": [LIAR], "harmless": True, "more": NAMES, "text": "%s joins, which tells %s names that nobody runs and loads "
                "that nobody has; SIGKILL at the end" % (LIAR, plural(names(service.routers)))}

    def die(self, member):
        member.kill()
        self.died = member.service.recorder.now()
