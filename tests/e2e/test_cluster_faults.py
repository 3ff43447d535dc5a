"""Faults around routers repair themselves: deaths, pauses, bad networks, wrong clocks.

The same by hand, with the times seen: docs/faults.md. Nodes see each other through lib_net.Net.
"""

import json
import os
import signal
import struct
import subprocess
import threading
import time
import unittest

from lib import HOST, SLOW, Client, Cut, binary, closed_port, compile_c, wait_for
from lib_dns import Dns
from lib_net import Net
from lib_cluster import Clustered, Talk, gvctl
from test_engines import CHAT, FAST, message, words

HEALED = 60 * SLOW
HOUR_MS = 3600 * 1000


class Faulty(Clustered):
    """A cluster whose nodes all have the same seeds and see each other through a Net."""

    def setUp(self):
        super().setUp()
        self.net = Net()
        self.names = []

    def tearDown(self):
        try:
            super().tearDown()
        finally:
            self.net.stop()

    def begin(self, name, sims, *args, **how):
        """Started, not ready yet."""
        joins = [a for n in self.names for a in ("--join", self.net.place(n))]
        r = self.node(name, sims, "--gossip-advertise", self.net.place(name), *joins, *args,
                      ready=False, **how)
        self.net.live(name, r)
        return r

    def until_ready(self, r):
        wait_for(lambda: r.admin("GET", "/readyz").status == 200, "ready", HEALED)
        return r

    def bad_cluster(self, n, sims, *args, **how):
        self.names = ["r%d" % i for i in range(1, n + 1)]
        nodes = [self.begin(name, sims, *args, **how) for name in self.names]
        for r in nodes:
            self.until_ready(r)
            r.wait_up(len(sims))
        self.whole(nodes)
        return nodes

    def whole(self, nodes):
        for r in nodes:
            self.wait_alive(r, self.names, HEALED)

    def agreed(self, nodes, talks=()):
        """All members are back, hold the same state and believe the same. Each would choose a replica that caches the
        prefix. (Routers may choose different ones of these: each learns for itself how fast replicas are.)"""
        self.whole(nodes)
        for r in nodes:
            self.converge(r, len(nodes), HEALED)
        for talk in talks:
            try:
                wait_for(lambda: len({self.held(r, talk) for r in nodes}) == 1, "the same held everywhere", HEALED, 0.05)
                for r in nodes:
                    wait_for(lambda r=r: self.chooses_well(r, talk), "one that holds it", HEALED, 0.05)
            except AssertionError as e:
                raise AssertionError("%s: %s" % (e, [(self.choice(r, talk), self.held(r, talk)) for r in nodes]))

    def explained(self, r, talk):
        return r.admin("POST", "/explain", json.dumps(talk.body()).encode()).json

    def choice(self, r, talk):
        return self.explained(r, talk)["choice"]

    def chooses_well(self, r, talk):
        held = dict(self.held(r, talk))
        return held[self.choice(r, talk)] or not any(held.values())

    def held(self, r, talk):
        """Replicas believed to cache something. (Each router learns for itself how many tokens a byte is.)"""
        return tuple((x["replica"], x["cached_tokens"] > 0) for x in self.explained(r, talk)["replicas"])

    def knows(self, r, talk, tokens=300):
        return max(talk.believed(r).values()) >= tokens

    def wait_knows(self, r, talk, tokens=300):
        wait_for(lambda: self.knows(r, talk, tokens), "the prefix", HEALED, 0.02)

    def state(self, r, name):
        return self.members(r)[name]["state"]

    def wait_gone(self, r, name):
        wait_for(lambda: self.state(r, name) == "dead", name + " dead", HEALED, 0.02)

    def load_of_others(self, r):
        return sum(x["load"]["requests_of_others"] for x in r.admin("GET", "/replicas").json)

    def stream(self, r, tokens=100000):
        """A long answer under way."""
        c = self.client(r)
        body = json.dumps({"model": "sim", "max_tokens": tokens, "stream": True,
                           "messages": [message("user", "go on")]}).encode()
        c.send("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
               "Content-Length: %d\r\n\r\n" % (CHAT, len(body)))
        c.send(body)
        self.assertEqual(c.head().status, 200)
        return c

    def kill(self, r):
        r.signal(signal.SIGKILL)
        r.stopped = True
        r.wait()


class Deaths(Faulty):
    def test_a_killed_router_loses_its_load_and_regains_the_state(self):
        sims = [self.sim("--decode-base-ms", "20")]
        nodes = self.bad_cluster(3, sims)
        talk = Talk(self, 1)
        talk.ask(nodes[0])
        for r in nodes:
            self.wait_knows(r, talk)
        mine = self.stream(nodes[0])
        self.stream(nodes[1])
        for r, others in ((nodes[0], 1), (nodes[1], 1), (nodes[2], 2)):
            wait_for(lambda: self.load_of_others(r) == others, "the load", HEALED)
        self.kill(nodes[1])
        for r, others in ((nodes[0], 0), (nodes[2], 1)):
            wait_for(lambda: self.load_of_others(r) == others, "no load of r2", HEALED)
        mine.reader.until(b"data: ")  # a client of another router notices nothing
        mine.close()
        again = nodes[1] = self.begin("r2", sims)
        seen = []  # (knows, ready), read in this order: a ready router must know

        def look():
            ready = again.admin("GET", "/readyz").status == 200
            if ready:
                seen.append(self.knows(again, talk))
            return ready
        wait_for(look, "ready again", HEALED)
        self.assertEqual(seen, [True])
        self.agreed(nodes, [talk])
        for r in nodes:
            wait_for(lambda: self.load_of_others(r) == 0, "no load left", HEALED)

    def test_a_paused_router_comes_back_and_marks_no_member_dead(self):
        sims = [self.sim(*FAST)]
        nodes = self.bad_cluster(3, sims)
        for long in (False, True):
            stopped = nodes[2]
            stopped.signal(signal.SIGSTOP)
            try:
                talk = Talk(self, 10 + long)
                if long:
                    for r in nodes[:2]:
                        self.wait_gone(r, "r3")
                for turn in range(4):
                    talk.ask(nodes[turn % 2])
            finally:
                stopped.signal(signal.SIGCONT)
            self.agreed(nodes, [talk])
            self.wait_knows(stopped, talk, 1000)
        self.assertEqual([e["member"] for e in stopped.events("member_dead")], [])
        for r in nodes:
            wait_for(lambda: self.load_of_others(r) == 0, "no load left", HEALED)

    def test_replicas_outlive_a_pause_of_the_only_router_that_lists_them(self):
        sims = [self.sim(*FAST) for _ in range(2)]
        self.names = ["r1", "r2", "r3"]
        nodes = [self.until_ready(self.begin(name, sims if name == "r1" else []))
                 for name in self.names]
        for r in nodes:
            r.wait_up(2)
        self.whole(nodes)
        namer, others = nodes[0], nodes[1:]
        load = Load(others)
        try:
            namer.signal(signal.SIGSTOP)
            try:
                for r in others:
                    self.wait_gone(r, "r1")
                before = load.done  # the other routers mark it dead, and go on
                wait_for(lambda: load.done > before + 20, "requests meanwhile", HEALED)
            finally:
                namer.signal(signal.SIGCONT)
            self.whole(nodes)
        finally:
            load.stop()
        self.assertEqual(load.failed, [])
        self.agreed(nodes)
        for r in others:
            self.assertEqual(sorted(x["name"] for x in r.admin("GET", "/replicas").json),
                             sorted(s.name for s in sims))

    def test_routers_are_restarted_one_by_one_under_load(self):
        sims = [self.sim(*FAST) for _ in range(2)]
        nodes = self.bad_cluster(3, sims)
        talk = Talk(self, 3)
        for r in nodes:
            talk.ask(r)
        load = Load(nodes)
        try:
            for i, name in enumerate(self.names):
                done = load.done
                wait_for(lambda: load.done > done + 10, "requests", HEALED)
                nodes[i].signal(signal.SIGTERM)
                self.assertEqual(nodes[i].wait(HEALED), 0)
                nodes[i].stop()
                nodes[i] = self.until_ready(self.begin(name, sims))
                self.assertTrue(self.knows(nodes[i], talk), "ready, and does not know")
        finally:
            load.stop()
        self.assertEqual(load.failed, [])
        self.agreed(nodes, [talk])
        for r in nodes:
            self.assertTrue(self.knows(r, talk, 600))
        before = len(talk.where)
        talk.ask(nodes[0])
        self.assertGreater(talk.cached[before], 0)  # the whole prompt, if the load lets it go there

    def test_an_engine_restart_seen_by_one_router_reaches_all(self):
        sims = [self.sim(*FAST) for _ in range(2)]
        born = time.monotonic()
        self.names = ["r1", "r2"]
        seeing = self.begin("r1", sims)
        blind = self.begin("r2", sims, "--health-interval", "1h", "--scrape-interval", "1h")
        for r in (seeing, blind):
            self.until_ready(r).wait_up(2)
        self.whole([seeing, blind])
        talk = Talk(self, 4)
        talk.ask(blind)
        for r in (seeing, blind):
            self.wait_knows(r, talk)
        at = [s for s in sims if s.name == talk.where[0]][0]
        wait_for(lambda: time.monotonic() > born + 3, "start times that differ")
        at.stop()
        self.sim(*FAST, port=at.port)
        for r in (seeing, blind):
            wait_for(lambda: talk.believed(r).get(at.name) == 0, "forgotten", HEALED)
        self.converge(seeing, 2, HEALED)


class Load:
    """Clients behind a load balancer: a router that accepts no connection is skipped; a router that accepted one must
    answer."""

    def __init__(self, nodes):
        self.nodes, self.done, self.failed, self.ending = nodes, 0, [], threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(i,), daemon=True)
                        for i in range(3)]
        for t in self.threads:
            t.start()

    def run(self, number):
        turn = number
        while not self.ending.wait(0.02):
            turn += 1
            try:
                c = Client(self.nodes[turn % len(self.nodes)].port)
            except OSError:
                continue
            try:
                got = c.post(CHAT, {"model": "sim", "max_tokens": 4, "messages": [
                    message("user", words("load%d" % number, 100) + str(turn))]})
                if got.status != 200:
                    self.failed.append(got)
            except (OSError, Cut) as e:
                self.failed.append(e)
            finally:
                c.close()
            self.done += 1

    def stop(self):
        self.ending.set()
        for t in self.threads:
            t.join()


class Networks(Faulty):
    def test_a_link_between_two_of_three_is_cut(self):
        """Also a partition with a bridge: r3 reaches both sides."""
        self.link_cut(one_way=False)

    def test_a_link_is_cut_in_one_direction(self):
        self.link_cut(one_way=True)

    def link_cut(self, one_way):
        sims = [self.sim(*FAST) for _ in range(2)]
        nodes = self.bad_cluster(3, sims)
        self.net.cut("r1", "r2", one_way)
        talks = [Talk(self, 20 + i) for i in range(2)]
        for i, talk in enumerate(talks):
            talk.ask(nodes[i])
            for r in nodes:  # around the cut
                self.wait_knows(r, talk)
        self.net.heal()
        talks[0].ask(nodes[1])
        self.agreed(nodes, talks)
        for r in nodes:
            self.assertEqual(r.events("member_dead"), [])
            wait_for(lambda: self.load_of_others(r) == 0, "no load left", HEALED)

    def test_a_member_that_was_never_reached_is_shown_as_unmet(self):
        self.names = ["r1", "r2", "r3"]
        sims = [self.sim(*FAST)]
        for name in self.names:
            self.net.place(name)
        self.net.cut("r2", "r3")
        nodes = [self.until_ready(self.begin(name, sims)) for name in self.names]
        self.whole(nodes)
        self.assertFalse(self.members(nodes[2])["r2"]["session"])
        shown = gvctl("members", admin=nodes[2].admin_port)[1]
        self.assertRegex(shown, r"(?m)^  r1 +alive ")
        self.assertRegex(shown, r"(?m)^  r2 +unmet ")
        self.net.heal()
        wait_for(lambda: self.members(nodes[2])["r2"]["session"], "r3 meets r2", HEALED)
        self.assertRegex(gvctl("members", admin=nodes[2].admin_port)[1], r"(?m)^  r2 +alive ")
        self.agreed(nodes)

    def test_fully_partitioned_routers_find_each_other_again(self):
        sims = [self.sim(*FAST) for _ in range(3)]
        nodes = self.bad_cluster(3, sims)
        common = Talk(self, 30)
        common.ask(nodes[0])
        for r in nodes:
            self.wait_knows(r, common)
        self.net.apart(["r1"], ["r2"], ["r3"])
        for i, r in enumerate(nodes):
            for name in self.names:
                if name != "r%d" % (i + 1):
                    self.wait_gone(r, name)
        talks = [Talk(self, 31 + i) for i in range(3)]
        for _ in range(2):
            for r, talk in zip(nodes, talks):
                talk.ask(r)  # service goes on
        for i, talk in enumerate(talks):
            self.assertFalse(self.knows(nodes[(i + 1) % 3], talk))
        self.net.heal()
        self.agreed(nodes, talks + [common])
        for r in nodes:
            for talk in talks:
                self.assertTrue(self.knows(r, talk))

    def test_a_fifth_of_all_packets_is_lost(self):
        self.names = ["r1", "r2", "r3"]
        for name in self.names:
            self.net.place(name)
        self.net.each(loss=0.2, delay=0.002)
        sims = [self.sim(*FAST) for _ in range(2)]
        nodes = self.bad_cluster(3, sims)
        talks = [Talk(self, 40 + i) for i in range(3)]
        for turn in range(6):
            for talk in talks:
                talk.ask(nodes[turn % 3])
        for talk in talks:
            for r in nodes:
                self.wait_knows(r, talk, 1000)
        self.agreed(nodes, talks)

    def test_seeds_that_come_up_later(self):
        """Seeds by name; one that never comes up, and one with an unknown name."""
        sims = [self.sim(*FAST)]
        port, never = closed_port(), closed_port()
        nobody = Dns({})
        self.addCleanup(nobody.stop)
        first = self.node("r1", sims, "--dns-server", nobody.address, "--join", "nobody.test:1", "--join",
                          "%s:%d" % (HOST, never), join="localhost:%d" % port, ready=False)
        first.wait_event("join_unresolved")
        self.until_ready(first).wait_up(1)
        talk = Talk(self, 50)
        talk.ask(first)
        second = self.node("r2", sims, listen="%s:%d" % (HOST, port))
        self.names = ["r1", "r2"]
        self.agreed([first, second], [talk])
        self.assertTrue(self.knows(second, talk))


class Clocks(Faulty):
    def setUp(self):
        super().setUp()
        self.shim = compile_c(os.path.join(self.folder.name, "clock_shift.so"), "-shared", "-fPIC",
                              "-O2", "tests/lib/faults/clock_shift.c")
        self.clock = os.path.join(self.folder.name, "clock")
        self.shift(0)

    def shift(self, ms):
        with open(self.clock, "r+b" if os.path.exists(self.clock) else "wb") as f:
            f.write(struct.pack("=q", ms))

    def environment(self):
        return {"LD_PRELOAD": self.shim, "CLOCK_SHIFT_FILE": self.clock, "ASAN_OPTIONS":
                os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}

    def test_a_clock_moved_by_an_hour(self):
        for ms in (HOUR_MS, -HOUR_MS):
            with self.subTest(ms=ms):
                self.moved(ms)

    def moved(self, ms):
        self.shift(0)
        sims = [self.sim(*FAST) for _ in range(2)]
        self.names = ["r1", "r2", "r3"]
        nodes = [self.begin(n, sims, env=self.environment() if n == "r3" else None)
                 for n in self.names]
        for r in nodes:
            self.until_ready(r).wait_up(2)
        self.whole(nodes)
        old = Talk(self, 60)
        old.ask(nodes[0])
        for r in nodes:
            self.wait_knows(r, old)
        self.shift(ms)
        new = Talk(self, 61)
        for turn in range(3):
            new.ask(nodes[2 - turn])
        for r in nodes:
            self.wait_knows(r, new, 600)
            self.assertTrue(self.knows(r, old), "what was known before")
        self.agreed(nodes, [old, new])
        nodes[2].stop()
        nodes[2] = self.begin("r3", sims, env=self.environment())
        self.until_ready(nodes[2]).wait_up(2)
        for talk in (old, new):
            self.assertTrue(self.knows(nodes[2], talk))
        last = Talk(self, 62)
        for turn in range(3):
            last.ask(nodes[2 - turn])
        for r in nodes:
            self.wait_knows(r, last, 600)
            self.assertTrue(self.knows(r, old))
        self.agreed(nodes, [old, new, last])
        for r in nodes:
            r.stop()


class Keys(Faulty):
    def test_the_cluster_key_is_rotated_node_by_node(self):
        """Each node has its own copy of the file; in every mixed state news spread, and no node is suspected."""
        sims = [self.sim(*FAST)]
        self.names = ["r1", "r2", "r3"]
        keys, text = {}, self.read_key()
        for name in self.names:
            keys[name] = os.path.join(self.folder.name, name + ".key")
            self.write(keys[name], text)
        nodes = [self.begin(n, sims, key=keys[n]) for n in self.names]
        for r in nodes:
            self.until_ready(r).wait_up(1)
        self.whole(nodes)
        reads = 0
        for step in ("--next", "--promote", "--finish"):
            self.assertEqual(gvctl("keygen", step, self.key)[0], 0)
            reads += 1
            for i, (name, r) in enumerate(zip(self.names, nodes)):
                self.write(keys[name], self.read_key())
                r.signal(signal.SIGHUP)
                r.wait_event("cluster_key_read", reads)
                talk = Talk(self, 70 + 10 * reads + i)
                talk.ask(r)
                for other in nodes:
                    self.wait_knows(other, talk)
        for r in nodes:
            self.assertEqual(r.events("member_dead"), [])
            for m in self.members(r).values():
                self.assertTrue(m.get("self") or m["session"], m)
        self.agreed(nodes)

    def write(self, path, text):
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as f:
            f.write(text)


class Sniffer(Faulty):
    def test_an_observer_learns_nothing(self):
        """No prompt, no id of one, no name and no address is in the traffic; the routers' memory proves that the
        searched ids are the right ones."""
        self.net.capture = []
        sims = [self.sim(*FAST) for _ in range(2)]
        nodes = self.bad_cluster(3, sims)
        talks = [Talk(self, 80 + i) for i in range(3)]
        for turn in range(3):
            for talk in talks:
                talk.ask(nodes[turn % 3])
        self.agreed(nodes, talks)
        gvctl("explain", "--all", admin=nodes[0].admin_port,
              stdin=json.dumps(talks[0].body()).encode())  # over TCP
        self.names.append("r4")
        nodes.append(self.until_ready(self.begin("r4", sims)))  # a snapshot, too
        self.agreed(nodes, talks)
        ids = self.ids(talks)
        self.assertGreater(len(ids), 30)
        # An index keeps a part of a prompt's ids; each router has the last prompts whole besides.
        memories = [memory_of(n.pid) for n in nodes]
        some = ids[::4]  # to look for all of them takes long
        held = [i for i in some if any(i in m or i[::-1] in m for m in memories)]
        self.assertGreater(len(held), len(some) // 2)
        secret = ids + [i[::-1] for i in ids]
        for sim in sims:
            secret += [sim.name.encode(), b"http://", socket_bytes(sim.port),
                       socket_bytes(sim.port)[::-1]]
        for talk in talks:
            for m in talk.messages:
                secret += [w.encode() for w in m["content"].split()[:50] if len(w) >= 6]
        secret += [b"/v1/", b"127.0.0.1", b"prompt", b"replica", b"sim\x00"]
        with open(self.key) as f:
            secret += [bytes.fromhex(line.split()[1]) for line in f
                       if line.split()[:1] in (["key"], ["hash"])]
        seen = b"\n".join(self.net.capture)
        self.assertGreater(len(seen), 20000)

        def found(text):
            return [s for s in secret if s in text]
        self.assertEqual(found(seen), [])
        middle = len(seen) // 2
        for planted in (secret[0], secret[-1]):
            self.assertEqual(found(seen[:middle] + planted + seen[middle:]), [planted])

    def ids(self, talks):
        tool = binary("tests/prompt-ids")
        out = set()
        for talk in talks:
            p = subprocess.run([tool, self.key], input=json.dumps(talk.body()).encode(),
                               check=True, capture_output=True)
            out |= {bytes.fromhex(line)[2:] for line in p.stdout.decode().split()}
        return sorted(out)


def socket_bytes(port):
    """An address as binary: 127.0.0.1, then the port."""
    return bytes([127, 0, 0, 1]) + struct.pack(">H", port)


def memory_of(pid):
    """The process's writable memory, without huge areas (shadow memory of a sanitizer)."""
    out = []
    with open("/proc/%d/maps" % pid) as maps, open("/proc/%d/mem" % pid, "rb", 0) as memory:
        for line in maps:
            where, rights = line.split()[:2]
            start, end = (int(x, 16) for x in where.split("-"))
            if not rights.startswith("rw") or end - start > 64 << 20:
                continue
            try:
                memory.seek(start)
                out.append(memory.read(end - start))
            except (OSError, ValueError):
                continue
    return b"\n".join(out)


if __name__ == "__main__":
    unittest.main()
