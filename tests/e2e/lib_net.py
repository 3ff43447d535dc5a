"""A bad network between routers, in user space: no privileges are needed.

Each node has a *place*: an address (UDP and TCP on one port) which it advertises and under which
alone the others see it. Packets of a node to a place are forwarded to the node that lives there,
from the sender's own place. So each ordered pair of nodes is a link that can be cut, delayed, made
lossy:

    net = Net()
    r1 = ...Router("--gossip-advertise", net.place("r1"))
    net.live("r1", r1)             # again after a restart
    net.cut("r1", "r2")            # both ways; one_way=True: only r1 -> r2
    net.heal()

A cut acts like a firewall's DROP: no side sees an error. A datagram is lost; a connection stops and
continues when the cut is healed. `capture` gets every payload, cut or not, if it is a list.
"""

import heapq
import os
import random
import selectors
import socket
import threading
import time

from lib_wait import pace

HOST = "127.0.0.1"
HELD_MAX = 64  # datagrams of a node whose port is not known yet


class Link:
    def __init__(self):
        self.cut = False
        self.loss = 0.0
        self.delay = 0.0
        self.sent = self.dropped = 0


class Place:
    def __init__(self, name):
        self.name = name
        self.udp, self.tcp = udp_and_tcp()
        self.port = self.udp.getsockname()[1]
        self.address = "%s:%d" % (HOST, self.port)
        self.node_port = None  # the real port of the node that lives here
        self.pid = None


def udp_and_tcp():
    while True:
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        udp.bind((HOST, 0))
        tcp = socket.socket()
        try:
            tcp.bind((HOST, udp.getsockname()[1]))
        except OSError:
            udp.close()
            tcp.close()
            continue
        tcp.listen(64)
        udp.setblocking(False)
        tcp.setblocking(False)
        return udp, tcp


def owner_of(port, pids):
    """The owner, among pids, of the connection from this local port, or None."""
    with open("/proc/net/tcp") as f:
        rows = [line.split() for line in f.readlines()[1:]]
    inodes = {"socket:[%s]" % r[9] for r in rows if int(r[1].rpartition(":")[2], 16) == port}
    for pid in pids:
        try:
            for fd in os.listdir("/proc/%d/fd" % pid):
                if os.readlink("/proc/%d/fd/%s" % (pid, fd)) in inodes:
                    return pid
        except OSError:
            continue
    return None


class Net:
    def __init__(self, seed=1):
        self.rng = random.Random(seed)
        self.lock = threading.RLock()
        self.places = {}
        self.links = {}
        self.capture = None
        self.late = []  # heap of (due, number, to, payload, out socket)
        self.number = 0
        self.held = []
        self.socks = set()
        self.stopped = False
        self.selector = selectors.DefaultSelector()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    # --- for tests -------------------------------------------------------------------------------

    def place(self, name):
        """The address under which others see this node."""
        with self.lock:
            if name not in self.places:
                p = self.places[name] = Place(name)
                self.selector.register(p.udp, selectors.EVENT_READ, (self._datagrams, p))
                self.selector.register(p.tcp, selectors.EVENT_READ, (self._accept, p))
            return self.places[name].address

    def live(self, name, router):
        """The process that lives there (from now on)."""
        with self.lock:
            p = self.places[name]
            p.node_port, p.pid = router.gossip_port, router.pid
            held, self.held = self.held, []
            for place, source, data in held:
                self._forward(place, source, data)

    def link(self, a, b):
        with self.lock:
            return self.links.setdefault((a, b), Link())

    def cut(self, a, b, one_way=False):
        self.link(a, b).cut = True
        if not one_way:
            self.link(b, a).cut = True

    def apart(self, *groups):
        """Cuts every link between the groups."""
        for i, group in enumerate(groups):
            for other in groups[i + 1:]:
                for a in group:
                    for b in other:
                        self.cut(a, b)

    def each(self, loss=0.0, delay=0.0):
        for a in list(self.places):
            for b in list(self.places):
                if a != b:
                    self.link(a, b).loss = loss
                    self.link(a, b).delay = delay

    def heal(self):
        with self.lock:
            for link in self.links.values():
                link.cut, link.loss, link.delay = False, 0.0, 0.0

    def stop(self):
        self.stopped = True
        self.thread.join()
        with self.lock:
            for s in list(self.socks):
                s.close()
            for p in self.places.values():
                p.udp.close()
                p.tcp.close()
        self.selector.close()

    # --- UDP -------------------------------------------------------------------------------------

    def _run(self):
        while not self.stopped:
            with self.lock:
                wait = min(0.05, max(0, self.late[0][0] - time.monotonic())) if self.late else 0.05
            for key, _ in self.selector.select(wait):
                what, place = key.data
                what(place)
            with self.lock:
                while self.late and self.late[0][0] <= time.monotonic():
                    _, _, to, data, out = heapq.heappop(self.late)
                    self._send(out, to, data)

    def _datagrams(self, place):
        for _ in range(64):
            try:
                data, source = place.udp.recvfrom(65536)
            except OSError:
                return
            with self.lock:
                self._forward(place, source[1], data)

    def _forward(self, place, source, data):
        who = [p for p in self.places.values() if p.node_port == source]
        if not who:
            self.held = self.held[-HELD_MAX:] + [(place, source, data)]
            return
        if self.capture is not None:
            self.capture.append(data)
        link = self.link(who[0].name, place.name)
        link.sent += 1
        if link.cut or self.rng.random() < link.loss or place.node_port is None:
            link.dropped += 1
        elif link.delay:
            self.number += 1
            heapq.heappush(self.late, (time.monotonic() + link.delay, self.number,
                                       place.node_port, data, who[0].udp))
        else:
            self._send(who[0].udp, place.node_port, data)

    @staticmethod
    def _send(out, to, data):
        try:
            out.sendto(data, (HOST, to))
        except OSError:
            pass  # a full buffer or no receiver: lost, as on any network

    # --- TCP -------------------------------------------------------------------------------------

    def _accept(self, place):
        try:
            sock, source = place.tcp.accept()
        except OSError:
            return
        sock.setblocking(True)
        self.socks.add(sock)
        threading.Thread(target=self._connection, args=(place, sock, source[1]),
                         daemon=True).start()

    def _connection(self, place, sock, source):
        with self.lock:
            pids = {p.pid: p.name for p in self.places.values() if p.pid}
        who = pids.get(owner_of(source, pids))
        if who is None:
            who = "?"
        there, back = self.link(who, place.name), self.link(place.name, who)
        while (there.cut or back.cut) and not self.stopped:
            pace(0.02)  # the handshake does not get through
        other = None
        try:
            other = socket.create_connection((HOST, place.node_port), 5)
            self.socks.add(other)
            t = threading.Thread(target=self._pump, args=(back, other, sock), daemon=True)
            t.start()
            self._pump(there, sock, other)
            t.join()
        except OSError:
            pass
        for s in (sock, other):
            if s is not None:
                self.socks.discard(s)
                s.close()

    def _pump(self, link, source, to):
        try:
            while not self.stopped:
                data = source.recv(65536)
                if self.capture is not None:
                    self.capture.append(data)
                while link.cut and not self.stopped:
                    pace(0.02)
                if link.delay:
                    pace(link.delay)
                if not data:
                    to.shutdown(socket.SHUT_WR)
                    return
                to.sendall(data)
        except OSError:
            for s in (source, to):
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
