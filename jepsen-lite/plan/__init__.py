"""Choice, time and length of faults: from a seed and nothing else.

Faults come alone and together. Each comes before any comes twice, and each pair of families before any pair does
(partition-ring and partition-halves are one family; its member is drawn). If there is time for each to come alone, they
do that first; in a shorter run they come in pairs at once. If there is no time for each pair, three overlap, which are
three pairs. Faults last as long as the time allows, and the number of rests fits the time too."""

import math
import random

LASTS = (1.0, 4.0)   # seconds of a fault that does not say
GAP_S = 1.0          # at most, before a fault of an episode begins
REST_S = 18.0        # approximate length of a rest, including the reads of workloads
REST_SHARE = 0.5     # share of the episodes that end with a rest;
REST_SHARE_LONG = (0.1, 0.3)  # at least and at most, where there is time for each fault to come alone
MEND_S = 3.0         # time of an episode in addition to its faults: beginning, waiting for the longest, repair
THREES = 0.45        # episodes with three faults for each pair of families, about


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


def longest_s(of, size):
    """Average length of the longest of `size` faults drawn from these."""
    of = sorted(of)
    size = max(1, min(size, len(of)))
    return sum(s * math.comb(i, size - 1) for i, s in enumerate(of)) / max(1, math.comb(len(of), size))


def total_s(sizes, lasts, share, rests):
    """Approximate length of episodes with their share of rests. `sizes`: (faults at a time, number of such episodes);
    `share`: length of faults beyond their minimum."""
    of = [least + share * (most - least) for least, most in lasts.values()]
    return sum(count * (longest_s(of, size) + GAP_S / 2 + MEND_S + rests * REST_S) for size, count in sizes)


def pairs_of(names, apart, rng):
    """One fault of each two families that may overlap."""
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


def threes_of(pairs, names, apart, rng):
    """The same pairs, three faults at a time: a third one is the one that brings the most pairs that are left."""
    left = {frozenset(map(family, p)): p for p in pairs}
    out = []

    def brings(name, a, b):
        alike = family(name) in (family(a), family(b)) or {frozenset((name, a)), frozenset((name, b))} & apart
        return 0 if alike else sum(frozenset((family(name), family(n))) in left for n in (a, b))
    while left:
        a, b = left.pop(next(iter(left)))
        third = max(rng.sample(names, len(names)), key=lambda n: brings(n, a, b))
        if not brings(third, a, b):
            out.append((a, b))
            continue
        out.append((a, b, third))
        for n in (a, b):
            left.pop(frozenset((family(third), family(n))), None)
    return out


def matched(names, apart):
    """All names in as few allowed pairs as possible; a remaining one is alone."""
    left, out = list(names), []
    while left:
        a = left.pop(0)
        b = next((b for b in left if frozenset((a, b)) not in apart and family(a) != family(b)), None)
        if b is not None:
            left.remove(b)
        out.append((a,) if b is None else (a, b))
    return out


def rounds(names, apart, rng, short, threes):
    """(name) and (name, name), or three of them, for ever."""
    while True:
        names = rng.sample(names, len(names))
        yield from matched(names, apart) if short else []
        yield from [(n,) for n in names]
        pairs = pairs_of(names, apart, rng)
        yield from threes_of(pairs, names, apart, rng) if threes else pairs
        short = False


def room(sizes, lasts, rests, seconds):
    """Possible length of faults beyond their minimum, in the time for these episodes: from 0 to 1."""
    least, most = (total_s(sizes, lasts, share, rests) for share in (0, 1))
    return min(1.0, max(0.0, (seconds - least) / (most - least))) if most > least else 1.0


def share_of_rests(sizes, lasts, seconds):
    """Share of the episodes of a long run that end with a rest."""
    least, most = REST_SHARE_LONG
    over = seconds - total_s(sizes, lasts, 0, 0)
    return min(most, max(least, over / (max(1, sum(n for _, n in sizes)) * REST_S)))


def sizes_of(names, lasts, seconds):
    """As many faults at a time as leave time for each pair: (faults, episodes) of a round."""
    alone, pairs = (1, len(names)), math.comb(len({family(n) for n in names}), 2)
    if total_s([alone], lasts, 0.5, REST_SHARE) > seconds:
        return [(2, (len(names) + 1) // 2)]
    in_twos = [alone, (2, pairs)]
    return in_twos if total_s(in_twos, lasts, 0, REST_SHARE_LONG[0]) <= seconds else [alone, (3, int(pairs * THREES))]


def episodes(seed, names, seconds, lasts=None, apart=()):
    """Episodes, for ever: the run takes them while there is time.

    `names`: of faults; `seconds`: of the run; `lasts`: name -> (least, most) seconds; `apart`: pairs that make no sense.
    """
    rng = random.Random(seed)
    names = sorted(names)
    lasts = {n: (lasts or {}).get(n, LASTS) for n in names}
    apart = {frozenset(p) for p in apart}
    sizes = sizes_of(names, lasts, seconds)
    short, threes = len(sizes) == 1, sizes[-1][0] == 3
    rests = REST_SHARE if short else share_of_rests(sizes, lasts, seconds)
    share = room(sizes, lasts, rests, seconds)
    decks = rounds(names, apart, rng, short, threes) if names else iter(lambda: (), None)
    rest = False
    for number, chosen in enumerate(decks, 1):
        faults = []
        for n in chosen:
            least, most = lasts[n]
            long = rng.uniform(least, least + share * (most - least))
            after = rng.uniform(0, GAP_S) if long > GAP_S else GAP_S  # a short one comes during the others
            faults.append(Fault(n, after, long, rng.getrandbits(32)))
        # One of two episodes of a short run ends with a rest, and not always the second.
        rest = not rest if short and number % 2 == 0 else rng.random() < rests
        yield Episode(number, faults, rest)
