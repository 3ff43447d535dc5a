"""In namespaces of its own: what the wire does to packets, one setting at a time. Run by test_lab.py.

    wire_story.py BUILD_DIR

Prints a line for each story, and ends with status 1 at the first that is not as it should be."""

import os
import random
import signal
import socket
import struct
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from lab.host import Host  # noqa: E402
from lab.network import Wire  # noqa: E402

PORT = 7490
LIMIT_S = 20   # for a packet that should come
QUIET_S = 0.1  # for one that should not, when the wire has none left


def machines(wire, names="abc"):
    return [Host(name, "10.77.9.%d" % (i + 1), wire) for i, name in enumerate(names)]


def udp(host):
    with host.inside():
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    s.bind((host.address, PORT))
    return s


def received(sock):
    out = []
    sock.settimeout(QUIET_S)
    try:
        while True:
            out.append(sock.recv(65536))
    except TimeoutError:
        return out


def numbers(packets):
    return [struct.unpack("!I", p[:4])[0] for p in packets]


def expect(what, condition, seen=""):
    if not condition:
        sys.exit("%s: not so: %s" % (what, seen))
    print("ok  " + what)


class Story:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def lay(self, seed):
        self.wire = Wire(self.program, seed, os.path.join(self.folder, "wire.log"))
        self.a, self.b, self.c = machines(self.wire)
        self.from_a, self.at_b, self.at_c = udp(self.a), udp(self.b), udp(self.c)

    def pull(self):
        for s in (self.from_a, self.at_b, self.at_c):
            s.close()
        for h in (self.a, self.b, self.c):
            os.close(h.namespace)
        self.wire.process.stdin.close()
        self.wire.process.wait()

    def exchange(self, sender, receiver, to, count, size=100, pause=0.0):
        """Numbered datagrams; what arrives, in order."""
        before, limit = self.wire.stats()["taken"], time.monotonic() + LIMIT_S
        for i in range(count):
            sender.sendto(struct.pack("!I", i) + b"x" * (size - 4), (to.address, PORT))
            if pause:
                time.sleep(pause)
        while time.monotonic() < limit:
            stats = self.wire.stats()
            if stats["taken"] >= before + count and stats["held"] == 0:
                break
            time.sleep(0.005)
        return received(receiver)

    def send(self, count=200, **how):
        return numbers(self.exchange(self.from_a, self.at_b, self.b, count, **how))

    def nothing_happens(self):
        expect("all arrive, in order", self.send() == list(range(200)))
        expect("and long ones", self.send(5, size=20000) == list(range(5)))  # in pieces

    def cut(self):
        self.layer.cut("a", "b", one_way=True)
        expect("nothing passes a cut", self.send(10) == [])
        back = self.exchange(self.at_b, self.from_a, self.a, 10)
        expect("cut one way, the other way is open", numbers(back) == list(range(10)))
        self.layer.cut("a", "b")
        expect("cut both ways", self.exchange(self.at_b, self.from_a, self.a, 10) == [])
        other = self.exchange(self.from_a, self.at_c, self.c, 10)
        expect("others are not touched", numbers(other) == list(range(10)))
        self.layer.mend("a", "b")
        expect("mended", self.send(10) == list(range(10)))

    def layers(self):
        second = self.wire.layer()
        self.layer.cut("a", "b")
        second.cut("a", ["b", "c"])
        self.layer.heal()
        expect("what another fault cut stays cut", self.send(5) == [])
        self.wire.remove(second)
        expect("until that is mended too", self.send(5) == list(range(5)))

    def shares(self):
        self.layer.link("a", "b", loss=0.3)
        got = self.send(1000)
        expect("a third is lost", 600 < len(got) < 800 and got == sorted(got), len(got))
        self.layer.heal()
        self.layer.link("a", "b", duplicate=0.5)
        got = self.send(400)
        expect("half come twice", len(set(got)) == 400 and 500 < len(got) < 700, len(got))
        self.layer.heal()
        self.layer.link("a", "b", reorder=0.2)
        got = self.send(400, pause=0.0005)
        expect("a fifth is overtaken", sorted(got) == list(range(400)) and got != sorted(got))
        self.layer.heal()
        self.layer.link("a", "b", corrupt=0.5)
        got = self.exchange(self.from_a, self.at_b, self.b, 400)
        bad = sum(1 for p in got if p[4:] != b"x" * 96 or struct.unpack("!I", p[:4])[0] >= 400)
        expect("half are damaged, and arrive", len(got) == 400 and 140 < bad < 260, (len(got), bad))
        self.layer.heal()

    def times(self):
        self.layer.link("a", "b", delay_ms=100, jitter_ms=50, one_way=True)
        began = time.monotonic()
        got = self.send(100)
        took = time.monotonic() - began - QUIET_S
        expect("delay and jitter keep the order", got == list(range(100)))
        expect("and take their time", took >= 0.1, took)
        self.layer.heal()
        self.layer.link("a", "b", rate_kbit=800)  # 100 KB a second
        began = time.monotonic()
        got = self.send(15, size=1000)
        expect("a rate is kept", len(got) == 15 and time.monotonic() - began - QUIET_S >= 0.05)
        expect("what waits too long is dropped", len(self.send(200, size=1000)) < 60)
        self.layer.heal()
        self.layer.link("a", "b", mtu=600)
        self.from_a.setsockopt(socket.IPPROTO_IP, 10, 0)  # IP_MTU_DISCOVER: none
        expect("what is too long for a link is gone", self.send(5, size=1000) == [] and len(self.send(5)) == 5)
        self.layer.heal()

    def streams(self):
        """TCP through all of it: what arrives is what was sent."""
        self.layer.link("a", "b", loss=0.02, duplicate=0.05, reorder=0.1, corrupt=0.01, delay_ms=2, jitter_ms=2)
        data = random.Random(1).randbytes(1 << 20)
        with self.b.inside():
            listener = socket.create_server((self.b.address, 80))
        with self.a.inside():
            out = socket.create_connection((self.b.address, 80), timeout=20)
        into, _ = listener.accept()
        into.settimeout(20)
        got = bytearray()
        out.setblocking(False)
        sent = 0
        while len(got) < len(data):
            try:
                sent += out.send(data[sent:sent + 65536]) if sent < len(data) else 0
            except BlockingIOError:
                pass
            into.settimeout(0.001 if sent < len(data) else 20)
            try:
                got += into.recv(1 << 16)
            except TimeoutError:
                pass
        expect("a megabyte arrives whole through loss, repeats, damage and delay", bytes(got) == data)
        for s in (listener, out, into):
            s.close()
        self.layer.heal()

    def captured(self):
        path = os.path.join(self.folder, "gossip.pcap")
        self.wire.capture(path, time.monotonic())
        self.layer.cut("a", "b")
        self.send(7)
        self.layer.heal()
        self.wire.flush()
        with open(path, "rb") as f:
            head, rest = f.read(24), f.read()
        expect("a capture has what was sent, also what was lost",
               struct.unpack("<I", head[:4])[0] == 0xa1b2c3d4 and len(rest) == 7 * (16 + 20 + 8 + 100))

    def moved(self):
        self.b.move("10.77.9.77")
        self.at_b.close()
        self.at_b = udp(self.b)
        expect("a machine moves to another address", self.send(5) == list(range(5)))

    def stood_still(self):
        before, began = len(self.wire.stalls()), time.monotonic()  # this machine may have been busy, too
        self.wire.process.send_signal(signal.SIGSTOP)
        time.sleep(0.8)
        self.wire.process.send_signal(signal.SIGCONT)
        self.send(1)
        spans = self.wire.stalls()[before:]
        expect("it says when it stood still", spans and
               began - 0.2 < spans[0][0] < began + 0.2 and spans[0][1] - spans[0][0] >= 0.7, spans)

    def tell(self):
        self.lay(seed=7)
        self.layer = self.wire.layer()
        for story in (self.nothing_happens, self.cut, self.layers, self.shares, self.times, self.streams, self.captured,
                      self.moved, self.stood_still):
            story()
        self.pull()
        fates = []
        for seed in (5, 5, 6):
            self.lay(seed)
            self.layer = self.wire.layer()
            self.layer.link("a", "b", loss=0.5)
            fates.append(self.send(100))
            self.pull()
        expect("the same seed loses the same packets", fates[0] == fates[1] != fates[2])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        Story(os.path.join(sys.argv[1], "tests/wire"), folder).tell()
