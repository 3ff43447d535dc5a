"""The victims that a fault may touch; pure, except for the table of each fault's victims. At least one process of
each kind stays well."""

import itertools
import threading


def choose(rng, names, held, most, spare=1):
    """Up to `most` of the names, at least one, none of them already taken; `spare` names remain free. [] if that is
    impossible."""
    free = [n for n in names if n not in held]
    count = min(most, len(free) - spare)
    return sorted(rng.sample(free, rng.randint(1, count))) if count > 0 else []


def halves(rng, routers, engines):
    """Two sides, each with a router, and with an engine if there are two. Sorted lists of names."""
    sides = ([], [])
    for names in (routers, engines):
        names = rng.sample(names, len(names))
        cut = rng.randint(1, len(names) - 1) if len(names) > 1 else 1
        sides[0].extend(names[:cut])
        sides[1].extend(names[cut:])
    return sorted(sides[0]), sorted(sides[1])


def across(one, other):
    """The links between two sides."""
    return list(itertools.product(one, other))


def ring(rng, names):
    """The links to cut so that each of the names reaches its two neighbours alone."""
    order = rng.sample(names, len(names))
    kept = {frozenset((order[i], order[i - 1])) for i in range(len(order))}
    return [p for p in itertools.combinations(sorted(names), 2) if frozenset(p) not in kept]


class Held:
    """Victims by fault. So two simultaneous faults never share a victim of one kind."""

    def __init__(self):
        self.lock = threading.Lock()
        self.by = {}

    def all(self):
        return set().union(*self.by.values()) if self.by else set()

    def take(self, owner, rng, names, most, spare=1):
        with self.lock:
            chosen = choose(rng, names, self.all(), most, spare)
            self.by.setdefault(owner, set()).update(chosen)
        return chosen

    def take_this(self, owner, name, names, spare=1):
        """Returns true if this one was free."""
        with self.lock:
            held = self.all()
            if name in held or len([n for n in names if n not in held]) <= spare:
                return False
            self.by.setdefault(owner, set()).add(name)
            return True

    def drop(self, owner, name=None):
        with self.lock:
            if name is None:
                self.by.pop(owner, None)
            elif owner in self.by:
                self.by[owner].discard(name)
