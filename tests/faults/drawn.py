"""The row `drawn`: engines, network and fault from a seed, out of all kinds that the other rows have.

The fault's own targets hold, but for p99: a round trip is no fault of the router's. The same seed draws the same again.
"""

import copy
import functools
import random

import edges
import place
import rows

# Permanent habits of engines, of each kind at most one.
HABITS = [
    [rows.COARSE],
    [("--framing", "comments,crlf"), ("--framing", "no-space,gzip"), ("--framing", "bytes"), ("--ping", "0.2")],
    [edges.NOISE],
    [("--interim", "1"), ("--interim", "3")],
    [("--idle-close-ms", str(ms), "--idle-ends", how) for ms in (20, 60, 160, 300) for how in ("close", "reset", "408")],
    [("--silence", "1.0", "--silence-after", "2", "--silence-share", "0.1")],
]
ROUND_TRIPS = (0, 20, 60, 160, 300)
# They need a fleet, a time or a place of their own.
ALONE = {"pause", "black-hole", "loopback", "names-moved", "names-silent", "names-late"}


def faults():
    return [r for r in rows.ROWS + edges.ROWS if r.name not in ALONE and r.engines == 8]


def where(rng, far):
    how = {}
    if far and rng.random() < 0.6:
        how["rtt"] = rng.choice(ROUND_TRIPS)
    if far and rng.random() < 0.4:
        how.update(named=True, late=rng.choice((0, 0, 0.5)), silent=rng.choice((0, 0, 12)))
    return how


def draw(seed, far):
    """A row. `far`: packets can be carried, and names answered."""
    rng = random.Random(seed)
    row = copy.copy(rng.choice(faults()))
    habits = [rng.choice(kind) for kind in HABITS if rng.random() < 0.35]
    sglang = "sglang" not in row.engine and rng.random() < 0.4 and row.name not in ("core", "sleep", "poison", "no-tool-parser")
    how = where(rng, far)
    row.at = functools.partial(place.Place, **how)
    row.engine = sum(habits, rows.SGLANG if sglang else ()) + row.engine
    row.title = "%s; engines %s; %s" % (row.title, " ".join(row.engine) or "as always", row.at())
    row.speed, row.needs_network = False, bool(how)
    return row


ROW = rows.Row("drawn", "engines, network and fault by chance (SEED=, RUNS= seeds one after the other)", None)
