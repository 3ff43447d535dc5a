"""Bytes that must not occur in the traffic between routers, and the search for them. Pure.

A needle is some bytes of a kind (prompt, hash, address, key, text). All are looked for in one pass, by their first
bytes."""

KEY = 6  # bytes by which a needle is found; none is shorter


class Needles:
    def __init__(self):
        self.by_key = {}  # first bytes -> {needle: kind}

    def __len__(self):
        return sum(len(some) for some in self.by_key.values())

    def add(self, kind, *needles):
        for needle in needles:
            if len(needle) < KEY:
                raise ValueError("%r is found anywhere by chance" % needle)
            self.by_key.setdefault(bytes(needle[:KEY]), {})[bytes(needle)] = kind

    def kinds(self):
        """{kind: how many}"""
        out = {}
        for some in self.by_key.values():
            for kind in some.values():
                out[kind] = out.get(kind, 0) + 1
        return out

    def find(self, data):
        """[(kind, needle, offset)]"""
        out = []
        by_key = self.by_key
        for at in range(len(data) - KEY + 1):
            some = by_key.get(data[at:at + KEY])
            if some is not None:
                out += [(kind, needle, at) for needle, kind in some.items() if data.startswith(needle, at)]
        return out


def address_needles(address, ports):
    """An IPv4 address as text, in an IPv6 address, and with each port, in both orders of bytes."""
    raw = bytes(int(part) for part in address.split("."))
    out = [address.encode(), b"\xff\xff" + raw]
    for port in ports:
        big, little = port.to_bytes(2, "big"), port.to_bytes(2, "little")
        out += [raw + big, raw + little, raw[::-1] + big, raw[::-1] + little, big + raw, little + raw]
    return [n for n in out if len(n) >= KEY]


class Streams:
    """Each piece of a TCP stream is searched together with the end of the piece before it."""

    def __init__(self, needles, overlap=64):
        self.needles, self.overlap, self.ends = needles, overlap, {}

    def find(self, way, data):
        before = self.ends.get(way, b"")
        whole = before + data
        self.ends[way] = whole[-self.overlap:]
        return [hit for hit in self.needles.find(whole) if hit[2] + len(hit[1]) > len(before)]
