"""Packets of a capture: raw IPv4, as the wire writes them."""

import struct

UDP, TCP = 17, 6


class Packet:
    """`data`: the payload; `raw`: all of it, from the IP header on."""

    def __init__(self, t, raw):
        self.t, self.raw = t, raw
        head = (raw[0] & 15) * 4
        self.kind = raw[9]
        self.source, self.target = (".".join(str(b) for b in raw[i:i + 4]) for i in (12, 16))
        self.from_port, self.to_port = struct.unpack_from(">HH", raw, head)
        begin = head + (8 if self.kind == UDP else (raw[head + 12] >> 4) * 4)
        self.data = raw[begin:struct.unpack_from(">H", raw, 2)[0]]

    @property
    def way(self):
        return self.source, self.from_port, self.target, self.to_port


class Reader:
    """Reads the packets added to the file since the last time."""

    def __init__(self, path):
        self.file, self.begun, self.rest = open(path, "rb"), False, b""

    def more(self):
        self.rest += self.file.read()
        at = 0
        if not self.begun and len(self.rest) >= 24:
            self.begun, at = True, 24
        while self.begun and at + 16 <= len(self.rest):
            seconds, micros, length = struct.unpack_from("=III", self.rest, at)
            if at + 16 + length > len(self.rest):
                break
            raw = self.rest[at + 16:at + 16 + length]
            at += 16 + length
            if len(raw) >= 28 and raw[9] in (UDP, TCP):
                yield Packet(seconds + micros / 1e6, raw)
        self.rest = self.rest[at:]
