"""Searches all traffic between routers for prompts, hashes and addresses. An intruder sends the routers captured
packets, altered and not, from its own address and from others', over UDP and TCP."""

import collections
import contextlib
import itertools
import json
import os
import random
import re
import socket
import subprocess
import time

from checkers.needles import Needles, Streams, address_needles
from lab import api, client as http
from workloads import pcap
from workloads.asked import each

GOSSIP_PORT = 7490
PORTS = (7490, 8000, 8080, 9090)
PATIENCE = 20.0
WORDS = 120            # words of a prompt, 12 letters each
KEPT = 400             # packets to each router, of calm times: what the intruder draws from
EACH = 25              # packets of each way and kind at a rest; a fifth of it at another time
LISTEN_S = 0.15        # for an answer
GAP_S = 0.002          # between two packets: more at once are not even opened
HELLO, WELCOME = 1, 2  # the first byte of what begins a session, and of its answer
AT_ONCE_S = 0.05
TEXT = (b"http://", b"/v1/chat", b"messages", b"x-grapevine", b"prompt", b"replica", b"10.77.")
# An altered hello may name this key and another cluster.
REFUSALS = ("refused_key", "hellos_held", "other_cluster", "refused_replay", "refused_malformed")


def altered(data, rng):
    """One bit is flipped, or the end is missing, or bytes are added. An empty one would not be counted."""
    how = rng.randrange(4) if len(data) > 1 else 1
    if how == 0:
        return data[:rng.randrange(1, len(data))]
    if how == 1:
        return data + rng.randbytes(rng.randint(1, 40))
    at = rng.randrange(len(data)) if how == 2 else rng.randrange(min(8, len(data)))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:]


def with_data(raw, data):
    """The UDP packet with other data. 0 is no checksum."""
    head = (raw[0] & 15) * 4
    ip = bytearray(raw[:head])
    ip[2:4] = (head + 8 + len(data)).to_bytes(2, "big")
    ip[10:12] = b"\0\0"
    total = sum(int.from_bytes(ip[i:i + 2], "big") for i in range(0, head, 2))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    ip[10:12] = (total ^ 0xffff).to_bytes(2, "big")
    return bytes(ip) + raw[head:head + 4] + (8 + len(data)).to_bytes(2, "big") + b"\0\0" + data


def memory_of(pid, most=64 << 20):
    """The process's writable memory."""
    with open("/proc/%d/maps" % pid) as maps, open("/proc/%d/mem" % pid, "rb", 0) as memory:
        for line in maps:
            where, rights = line.split()[:2]
            start, end = (int(x, 16) for x in where.split("-"))
            if rights.startswith("rw") and end - start <= most:
                with contextlib.suppress(OSError, ValueError):
                    memory.seek(start)
                    yield memory.read(end - start)


class Workload:
    name = "confidentiality"
    clients = 2      # one that asks, and the intruder
    capture = True

    def __init__(self, service, recorder, rng):
        self.service, self.recorder, self.rng = service, recorder, random.Random(rng.random())
        self.model = getattr(service, "model", "sim")
        self.asker, self.intruder = service.clients
        self.tool = os.path.join(service.build, "tests/prompt-ids")
        self.reader = pcap.Reader(os.path.join(service.folder, "gossip.pcap"))
        self.needles, self.injections = Needles(), itertools.count(1)
        self.streams = Streams(self.needles)
        self.answered = None  # the last prompt (body, words) that routers learned of: it was answered
        self.unhashed = collections.deque(maxlen=200)
        self.packets = {}   # name of a router -> those that it got in calm times
        self.hellos = {}    # answered ones, of any time
        self.asked = {}     # (source, target) -> the last hello of that way
        self.calls = {}     # the beginnings of calls to it
        self.controlled = False
        for host in service.hosts.values():
            self.needles.add("address", *address_needles(host.address, PORTS))
        self.needles.add("text", *TEXT)

    # --- clients

    def step(self, client, rng):
        if client is self.intruder:
            time.sleep(rng.uniform(0.5, 2))
            self.attack(rng.choice(self.service.routers), rng, max(EACH // 5, 1))
        else:
            self.ask(client, rng)
            time.sleep(rng.uniform(0.1, 1))

    def ask(self, client, rng):
        words = ["".join(rng.choice("bcdfghjklmnpqrstvwxz") for _ in range(12)) for _ in range(WORDS)]
        body = json.dumps({"model": self.model, "max_tokens": 4, "stream": False,
                           "messages": [{"role": "user", "content": " ".join(words)}]}).encode()
        self.needles.add("prompt", *(w.encode() for w in words[::10]))
        self.unhashed.append(body)
        name, address, port = self.service.anyone(rng)
        operation = self.recorder.invoke(client.name, "confidentiality.chat", {"router": name})
        answer = http.ask(client, address, port, "POST", api.CHAT, {"x-jepsen-op": str(operation.id)}, body, PATIENCE)
        whole = answer.finished and answer.status == 200
        if whole:
            self.answered = body, words
        end = operation.ok if whole else operation.info
        end({"status": answer.status, "error": answer.error})

    # --- the search

    def hashes(self, body):
        """The 48 bits of each point of the prompt, which routers exchange encrypted."""
        if not os.access(self.tool, os.X_OK) or not os.path.exists(self.service.key_file):
            return []
        done = subprocess.run([self.tool, self.service.key_file], input=body,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return [bytes.fromhex(line)[2:] for line in done.stdout.decode().split()]

    def hash_prompts(self):
        while self.unhashed:
            ids = self.hashes(self.unhashed.popleft())
            self.needles.add("hash", *ids, *(i[::-1] for i in ids))

    def read_keys(self):
        with contextlib.suppress(OSError), open(self.service.key_file) as f:
            for key in re.findall(r"(?m)^\w+ ([0-9a-f]{64})$", f.read()):
                self.needles.add("key", bytes.fromhex(key), key.encode())

    def name_of(self, address):
        return next((h.name for h in self.service.hosts.values() if h.address == address), address)

    def search(self, calm):
        """Looks through what was captured since the last time, and keeps packets for the intruder."""
        self.hash_prompts()
        self.read_keys()
        packets, size, hits = 0, 0, []
        for p in self.reader.more():
            packets, size = packets + 1, size + len(p.data)
            found = self.needles.find(p.data) if p.kind == pcap.UDP else self.streams.find(p.way, p.data)
            hits += [{"kind": kind, "needle": needle.hex(), "from": self.name_of(p.source),
                      "to": self.name_of(p.target), "at": at} for kind, needle, at in found]
            if p.source != self.intruder.address and p.to_port == GOSSIP_PORT and p.data:
                if p.kind == pcap.UDP and calm is not None and p.t >= calm:
                    self.packets.setdefault(self.name_of(p.target), collections.deque(maxlen=KEPT)).append(p)
                if p.kind == pcap.UDP:
                    self.keep_hello(p)
                if p.kind == pcap.TCP:
                    self.begin_call(p)
        self.recorder.event(self.asker.name, "confidentiality.searched", {
            "packets": packets, "bytes": size, "needles": self.needles.kinds(), "hits": hits[:50]})

    def keep_hello(self, p):
        """An answered hello arrived: a repetition of it is not new."""
        if p.data[0] == HELLO:
            self.asked[p.source, p.target] = p
        elif p.data[0] == WELCOME:
            hello = self.asked.pop((p.target, p.source), None)
            if hello is not None and p.t < hello.t + AT_ONCE_S:
                self.hellos.setdefault(self.name_of(p.source), collections.deque(maxlen=5)).append(hello)

    def begin_call(self, p):
        calls = self.calls.setdefault(self.name_of(p.target), collections.OrderedDict())
        calls[p.way] = calls.get(p.way, b"") + p.data if len(calls.get(p.way, b"")) < 4000 else calls[p.way]
        while len(calls) > 20:
            calls.popitem(last=False)

    def control(self):
        """The same search where needles are."""
        router = next((r for r in self.service.routers if r.alive), None)
        if router is None or self.answered is None:
            return
        body, words = self.answered
        sought = {"prompt": len(words[::10]), "address": 1}
        request = http.request_bytes(router.address, router.port, "POST", api.CHAT, {}, body)
        found = {}
        for kind, needle in {(kind, needle) for kind, needle, _ in self.needles.find(request)}:
            found[kind] = found.get(kind, 0) + 1
        ids = self.hashes(body)
        if ids:
            sought["hash"] = len(ids)
            with contextlib.suppress(Exception):
                router.admin("POST", "/explain", body, timeout=5)  # hashes are in its table in pieces, here whole
            memory = b"\n".join(memory_of(router.pid))
            found["hash"] = sum(i in memory or i[::-1] in memory for i in ids)
        self.recorder.event(self.asker.name, "confidentiality.control", {"sought": sought, "found": found,
                                                                         "router": router.name})
        self.controlled = True

    # --- the intruder

    def attack(self, router, rng, count):
        """Each way and kind, some packets. A router knows no stamp of its earlier lives, and answers a hello of then
        once, which opens nothing (gossip/stamps.h): what it got in this one is sent."""
        began, now = router.began, self.recorder.now()
        known = [p for p in self.packets.get(router.name, ()) if began < p.t < now - 0.2]
        hellos = [p for p in self.hellos.get(router.name, ()) if began < p.t]
        for by in ("intruder", "spoofed", "wire"):
            for how in ("replayed", "altered", "random"):
                if how == "random":
                    some = [(None, bytes([rng.randrange(6)]) + rng.randbytes(rng.randrange(1200)))
                            for _ in range(count)]
                else:
                    chosen = rng.choices(known, k=count) + hellos if known else []
                    some = [(p, p.data if how == "replayed" else altered(p.data, rng)) for p in chosen]
                if some and (by == "intruder" or some[0][0] is not None):
                    self.inject(router, by, how, some)
        self.call(router, rng)

    def inject(self, router, by, how, some):
        operation = self.recorder.invoke(self.intruder.name, "confidentiality.inject",
                                         {"to": router.name, "how": how, "by": by})
        send = {"intruder": self.from_here, "spoofed": self.from_there, "wire": self.by_wire}[by]
        try:
            operation.ok(dict(send(router, some), sent=len(some)))
        except OSError as e:
            operation.info({"error": str(e)})

    def from_here(self, router, some):
        with self.intruder.inside():
            sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        answers = []
        with sock:
            for _, data in some:
                sock.sendto(data, (router.address, GOSSIP_PORT))
                time.sleep(GAP_S)
            until = time.monotonic() + LISTEN_S
            while (left := until - time.monotonic()) > 0:
                sock.settimeout(left)
                with contextlib.suppress(TimeoutError):
                    answers.append(sock.recv(2000).hex())
        return {"answers": answers}

    def from_there(self, router, some):
        with self.intruder.inside():
            sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        with sock:
            for p, data in some:
                sock.sendto(with_data(p.raw, data), (router.address, 0))
                time.sleep(GAP_S)
        return {}

    def by_wire(self, router, some):
        for p, data in some:
            self.service.wire.inject(router.name, p.raw if data == p.data else with_data(p.raw, data))
            time.sleep(GAP_S)
        return {}

    def call(self, router, rng):
        """The beginning of a call, once more; or something like it."""
        known = list(self.calls.get(router.name, {}).values())
        how = rng.choice(("replayed", "altered") if known else ("random",))
        data = rng.choice(known) if known else rng.randbytes(300)
        data = altered(data, rng) if how == "altered" else data
        operation = self.recorder.invoke(self.intruder.name, "confidentiality.call", {"to": router.name, "how": how})
        answer = b""
        try:
            with self.intruder.inside():
                sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            with sock:
                sock.settimeout(1)
                sock.connect((router.address, GOSSIP_PORT))
                sock.sendall(data)
                sock.settimeout(LISTEN_S)
                with contextlib.suppress(TimeoutError):
                    while (more := sock.recv(2000)) and len(answer) < 20000:
                        answer += more
        except OSError as e:
            if not answer:
                operation.fail({"error": str(e)})
                return
        operation.ok({"sent": len(data), "answer": answer.hex()})

    # --- at rest

    def state(self, router, injection, moment):
        """State that an injection must not change."""
        operation = self.recorder.invoke("ask-" + router.name, "confidentiality.state",
                                         {"router": router.name, "injection": injection, "moment": moment})
        try:
            said = [router.admin("GET", path, timeout=3) for path in ("/members", "/replicas", "/convergence")]
        except Exception as e:
            operation.fail({"error": str(e)})
            return
        if [status for status, _ in said] != [200, 200, 200]:
            operation.fail({"status": [status for status, _ in said]})
            return
        members, replicas, convergence = (body for _, body in said)
        gossip, mine = members["stats"]["gossip"], convergence["nodes"].get(router.name, {})
        operation.ok({
            "members": sorted([m["name"], m["state"], m["incarnation"], m["address"]] for m in members["members"]),
            "replicas": sorted([r["name"], r["wish"], r["incarnation"]["raises"]] for r in replicas),
            "registry": mine.get("registry"), "poison": mine.get("poison"),
            "entries": {str(g["generation"]): g["entries"] for g in mine.get("index", [])[-1:]},
            "conflicts": gossip["name_conflicts"], "quarantines": gossip["quarantines"], "died": gossip["died"],
            "refused": sum(gossip[name] for name in REFUSALS)})

    def rest(self):
        began = self.recorder.now()
        time.sleep(0.3)
        self.service.wire.flush()
        self.search(began)
        if not self.controlled:
            self.control()
        injection = next(self.injections)
        living = [r for r in self.service.routers if r.alive]
        each(living, lambda router: self.state(router, injection, "before"))
        for router in living:
            self.attack(router, self.rng, EACH)
        time.sleep(0.1)
        each(living, lambda router: self.state(router, injection, "after"))
