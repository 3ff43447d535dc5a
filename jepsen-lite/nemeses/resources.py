"""No more descriptors, no more memory: limits set on a router that runs."""

import os
import resource

from lab import cgroup, main

from .base import Nemesis, names, plural
from .process import start_again

MIB = 1 << 20


def set_limit(pid, which, limits):
    try:
        resource.prlimit(pid, which, limits)
    except ProcessLookupError:
        pass


class _Limit(Nemesis):
    seconds = (2, 10)
    which = None

    def limit(self, router, soft):
        pid = router.pid
        before = resource.prlimit(pid, self.which)
        self.later(start_again, router)  # if it could not live with that
        self.later(set_limit, pid, self.which, before)
        resource.prlimit(pid, self.which, (soft, before[1]))


class Descriptors(_Limit):
    """Routers have 0 to 10 descriptors left."""
    name, which = "descriptors", resource.RLIMIT_NOFILE

    def start(self, service, rng):
        chosen, more = self.some(service, rng, "routers"), rng.choice((0, 1, 3, 10))
        if not chosen:
            return self.nobody()
        for r in chosen:
            # The limit is on numbers of descriptors, not on how many there are.
            top = max(int(n) for n in os.listdir("/proc/%d/fd" % r.pid))
            self.limit(r, top + 1 + more)
        return {"hosts": names(chosen),
                "text": "%s: %d descriptors are left" % (plural(names(chosen)), more)}


class Memory(_Limit):
    """The kernel gives routers no memory any more, or next to none; what they have they keep."""
    name, which = "memory", resource.RLIMIT_AS

    def start(self, service, rng):
        chosen, more = self.some(service, rng, "routers"), rng.choice((0, MIB // 4, 4 * MIB))
        if not chosen:
            return self.nobody()
        for r in chosen:
            with open("/proc/%d/statm" % r.pid) as f:
                pages = int(f.read().split()[0])
            self.limit(r, pages * resource.getpagesize() + more)
        return {"hosts": names(chosen),
                "text": "%s: the kernel gives %d KiB of memory more" % (plural(names(chosen)), more // 1024)}


class MemoryGroup(Nemesis):
    """A container that is too small: the kernel kills a router that needs more."""
    name = "memory-group"
    seconds = (2, 10)

    @staticmethod
    def missing():
        return None if cgroup.find() else "a cgroup for memory, writable"

    def start(self, service, rng):
        chosen, more = self.some(service, rng, "routers", 1), rng.choice((1, 4))
        if not chosen:
            return self.nobody()
        router, memory, number = chosen[0], cgroup.find(), os.environ[main.INSIDE]
        self.later(start_again, router)
        self.later(memory.remove, number)
        self.later(memory.release, router.pid)
        memory.confine(router.pid, number, more * MIB)
        return {"hosts": [router.name], "text": "%s is killed by the kernel if it wants %d MiB of memory more"
                % (router.name, more)}
