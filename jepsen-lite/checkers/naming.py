"""Names that a source no longer lists. Each router drops them by itself."""

# A name that no source says any more is kept for 30 s and while it is busy (node/discover/discover.h).
NAMES_S = 45
NAMING = ("dns-lie", "dns-fail", "dns-silent", "member-lies", "renew-engine")

LIAR = "liar"  # a member that is no router of the service: it announces names (fault `member-lies`)
# Its names are announced 75 s before their time is over (node/cluster/lie.c), until 4 s after it is ready.
LIES_S = 85
TRIED_S = 60   # a router names a name so recently heard, and not tried, once more (crdt/registry_life.c)


def lately(faults, begin, end):
    """The `faults`, (begin, end, value), that may make names come or go between these times."""
    return [v for b, e, v in faults
            if v.get("fault") in NAMING and b <= end and e >= begin - (LIES_S if v["fault"] == "member-lies" else NAMES_S)]


def lied(faults, begin, end):
    """Addresses that a lying name server named, and that some routers still list, or list again because other routers
    named them."""
    return {address for v in lately(faults, begin, end) for address in v.get("more", ())}


def host(replica):
    return replica.rpartition(":")[0]
