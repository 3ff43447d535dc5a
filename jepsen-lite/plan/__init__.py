"""Which faults, when, for how long: from a seed and nothing else.

Faults come alone and in pairs. Each comes before any comes twice, and each pair of families before any pair does
(partition-ring and partition-halves are one family; who of it comes is drawn). Where there is time for each to come
alone, they do that first; in a shorter run they come in pairs at once. They last as long as there is time for, and rests
are so many that there is time for most pairs.
"""

import random

LASTS = (1.0, 4.0)   # seconds of a fault that does not say
GAP_S = 1.0          # at most, before a fault of an episode begins
REST_S = 18.0        # what a rest takes, about, with what workloads read then
REST_SHARE = 0.5     # of the episodes end with a rest;
REST_SHARE_LONG = (0.1, 0.3)  # at least and at most, where there is time for each fault to come alone
MEND_S = 2.2         # what an episode takes beside its faults: they begin, the longer one is waited for, they are mended


class Fault:
    """`after`: seconds since the episode began; `lasts`: until it is mended."""

    def __init__(self, name, after, lasts, seed):
        self.name, self.after, self.lasts, self.seed = name, after, lasts, seed

    def __repr__(self):
        return "%s(%.1f+%.1f)" % (self.name, self.after, self.lasts)


class Episode:
    def __init__(self, number, faults, rest):
        self.number, self.faults, self.rest = number, faults, rest

    @property
    def seconds(self):
        return max((f.after + f.lasts for f in self.faults), default=LASTS[1])

    def __repr__(self):
        return "%d: %s%s" % (self.number, ", ".join(map(repr, self.faults)) or "none", ", rest" if self.rest else "")


def family(name):
    return name.partition("-")[0]


def episode_s(lasts, names, share, rests):
    """What an episode takes with its share of a rest, about. `share`: how far faults last beyond their least."""
    of = [lasts[n][0] + share * (lasts[n][1] - lasts[n][0]) for n in names]
    return sum(of) / max(1, len(of)) + GAP_S / 2 + MEND_S + rests * REST_S


def pairs_of(names, apart, rng):
    """One of each two families that may stand together."""
    families, out = {}, []
    for n in names:
        families.setdefault(family(n), []).append(n)
    kinds = list(families)
    for i, one in enumerate(kinds):
        for other in kinds[i + 1:]:
            may = [(a, b) for a in families[one] for b in families[other] if frozenset((a, b)) not in apart]
            if may:
                out.append(rng.choice(may))
    rng.shuffle(out)
    return out


def matched(names, apart):
    """All names in as few pairs as may stand together; who is left stands alone."""
    left, out = list(names), []
    while left:
        a = left.pop(0)
        b = next((b for b in left if frozenset((a, b)) not in apart and family(a) != family(b)), None)
        if b is not None:
            left.remove(b)
        out.append((a,) if b is None else (a, b))
    return out


def rounds(names, apart, rng, short):
    """(name) and (name, name), for ever."""
    while True:
        names = rng.sample(names, len(names))
        yield from matched(names, apart) if short else []
        yield from [(n,) for n in names]
        yield from pairs_of(names, apart, rng)
        short = False


def room(count, names, lasts, rests, seconds):
    """How far faults may last beyond their least, so that there is time for so many episodes: from 0 to 1."""
    least, most = (count * episode_s(lasts, names, share, rests) for share in (0, 1))
    return min(1.0, max(0.0, (seconds - least) / (most - least))) if most > least else 1.0


def share_of_rests(count, names, lasts, seconds):
    """How many of the episodes of a long run end with a rest."""
    least, most = REST_SHARE_LONG
    over = seconds - count * episode_s(lasts, names, 0, 0)
    return min(most, max(least, over / (max(1, count) * REST_S)))


def episodes(seed, names, seconds, lasts=None, apart=()):
    """Episodes, for ever: the run takes them while there is time.

    `names`: of faults; `seconds`: of the run; `lasts`: name -> (least, most) seconds; `apart`: pairs that make no sense.
    """
    rng = random.Random(seed)
    names = sorted(names)
    lasts = {n: (lasts or {}).get(n, LASTS) for n in names}
    apart = {frozenset(p) for p in apart}
    families = len({family(n) for n in names})
    short = len(names) * episode_s(lasts, names, 0.5, REST_SHARE) > seconds
    count = (len(names) + 1) // 2 if short else len(names) + families * (families - 1) // 2
    rests = REST_SHARE if short else share_of_rests(count, names, lasts, seconds)
    share = room(count, names, lasts, rests, seconds)
    decks = rounds(names, apart, rng, short) if names else iter(lambda: (), None)
    rest = False
    for number, chosen in enumerate(decks, 1):
        faults = []
        for n in chosen:
            least, most = lasts[n]
            faults.append(Fault(n, rng.uniform(0, GAP_S), rng.uniform(least, least + share * (most - least)),
                                rng.getrandbits(32)))
        # Of two episodes of a short run one ends with a rest, and it is not always the second.
        rest = not rest if short and number % 2 == 0 else rng.random() < rests
        yield Episode(number, faults, rest)
