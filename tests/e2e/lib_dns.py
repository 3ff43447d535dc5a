"""A DNS server for tests: A, AAAA and SRV by UDP and TCP, with possible failures.

    dns = Dns({"engines.test": {"A": ["127.0.0.2"], "AAAA": ["::1"]},
               "_http._tcp.engines.test": {"SRV": [(8001, "e1.engines.test")]}})
    ... --dns-server dns.address
    dns.records["engines.test"]["A"].append("127.0.0.3")
    dns.mode = "servfail"       # or "refused", "nxdomain", "empty", "silent"; None: normal
    dns.modes["AAAA"] = "servfail"   # for queries of that type alone

A name without records gets NXDOMAIN. An answer of more than 512 bytes is cut and marked so: a client
gets all of it by TCP. `asked` is the list of (name, type, protocol).
"""

import socket
import struct
import threading

HOST = "127.0.0.1"
TYPES = {1: "A", 28: "AAAA", 33: "SRV"}
RCODES = {"servfail": 2, "nxdomain": 3, "refused": 5}
UDP_MAX = 512


def packed_name(name):
    return b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0"


def read_question(query):
    parts, at = [], 12
    while query[at]:
        parts.append(query[at + 1:at + 1 + query[at]].decode())
        at += 1 + query[at]
    return ".".join(parts).lower(), struct.unpack("!HH", query[at + 1:at + 5])[0], at + 5


class Dns:
    def __init__(self, records, host=HOST, port=0):
        self.records = records
        self.host = host
        self.mode = None
        self.modes = {}
        self.asked = []
        while True:
            self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.udp.bind((host, port))
            self.port = self.udp.getsockname()[1]
            self.tcp = socket.socket()
            try:
                self.tcp.bind((host, self.port))
                break
            except OSError:
                self.udp.close()
                self.tcp.close()
        self.tcp.listen(16)
        self.address = "%s:%d" % (host, self.port)
        self.stopping = False
        for serve in (self._serve_udp, self._serve_tcp):
            threading.Thread(target=serve, daemon=True).start()

    def _data(self, kind, value):
        if kind == "SRV":
            return struct.pack("!HHH", 0, 0, value[0]) + packed_name(value[1])
        return socket.inet_pton(socket.AF_INET if kind == "A" else socket.AF_INET6, value)

    def answer(self, query, protocol):
        """The answer's bytes, or None."""
        name, number, end = read_question(query)
        kind = TYPES.get(number, str(number))
        self.asked.append((name, kind, protocol))
        mode = self.modes.get(kind, self.mode)
        if mode == "silent":
            return None
        known = self.records.get(name)
        rcode = RCODES.get(mode, 0 if known is not None else RCODES["nxdomain"])
        found = list(known.get(kind, [])) if rcode == 0 and known and mode != "empty" else []
        data = [self._data(kind, value) for value in found]
        body = b"".join(b"\xc0\x0c" + struct.pack("!HHIH", number, 1, 1, len(d)) + d for d in data)
        cut = protocol == "udp" and end + len(body) > UDP_MAX
        head = query[:2] + struct.pack("!HHHHH", 0x8180 | (0x0200 if cut else 0) | rcode, 1,
                                       0 if cut else len(data), 0, 0)
        return head + query[12:end] + (b"" if cut else body)

    def _serve_udp(self):
        while not self.stopping:
            try:
                query, peer = self.udp.recvfrom(4096)
                if len(query) < 17:
                    continue
                reply = self.answer(query, "udp")
                if reply is not None:
                    self.udp.sendto(reply, peer)
            except OSError:
                return

    def _serve_tcp(self):
        while not self.stopping:
            try:
                sock, _ = self.tcp.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(sock,), daemon=True).start()

    def _talk(self, sock):
        with sock, sock.makefile("rb") as reader:
            while True:
                size = reader.read(2)
                if len(size) < 2:
                    return
                reply = self.answer(reader.read(struct.unpack("!H", size)[0]), "tcp")
                if reply is None:
                    return
                sock.sendall(struct.pack("!H", len(reply)) + reply)

    def stop(self):
        self.stopping = True
        for sock in (self.udp, self.tcp):
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            sock.close()
