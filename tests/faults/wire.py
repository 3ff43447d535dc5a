#!/usr/bin/env python3
"""A far network: packets to 10.99.0.0/16 come back from there, to the same port, half a round trip later.

A TUN device gets packets to far addresses. Each packet goes back into it with its two addresses exchanged, which
leaves its checksums right. So a connection to 10.99.0.7:8000 reaches the listener on NEAR:8000, which sees 10.99.0.7 at
the other end, and both kernels measure the round trip. `tc netem` is not needed, a module that many machines lack.

    tests/faults/wire.py        in a network namespace of its own; lines of its standard input: `rtt MS`
"""

import collections
import fcntl
import os
import select
import struct
import subprocess
import sys
import time

NEAR, FAR = "10.98.0.1", "10.99.0.1"
TUNSETIFF, IFF_TUN_NO_PI = 0x400454CA, 0x1001
PACKETS_MAX = 64  # per turn: due packets go first


class Wire:
    """The process that does it, for the driver."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, os.path.abspath(__file__)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.works = self.process.stdout.readline() == "ready\n"

    def rtt(self, ms):
        self.process.stdin.write("rtt %g\n" % ms)
        self.process.stdin.flush()

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def exchange(packet):
    """Swaps the addresses of an IPv4 packet."""
    return packet[:12] + packet[16:20] + packet[12:16] + packet[20:]


def carry(tun, delay=0.0):
    waiting = collections.deque()
    while True:
        limit = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        ready, _, _ = select.select([tun, sys.stdin], [], [], limit)
        if sys.stdin in ready:
            words = sys.stdin.readline().split()
            if not words:
                return
            delay = float(words[1]) / 2000
        for _ in range(PACKETS_MAX if tun in ready else 0):
            try:
                packet = os.read(tun, 65536)
            except BlockingIOError:
                break
            if packet[0] >> 4 == 4:
                # in their order, also when the delay shrinks
                due = max(time.monotonic() + delay, waiting[-1][0] if waiting else 0)
                waiting.append((due, exchange(packet)))
        while waiting and waiting[0][0] <= time.monotonic():
            os.write(tun, waiting.popleft()[1])


def main():
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", b"far", IFF_TUN_NO_PI))
    for words in ("link set far mtu 9000 up", "route add 10.99.0.0/16 dev far src " + NEAR):
        subprocess.run(["ip"] + words.split(), check=True)
    print("ready", flush=True)
    carry(tun)


if __name__ == "__main__":
    main()
