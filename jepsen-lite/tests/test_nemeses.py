"""Nemeses without a service: the victims that they choose, what they read, and that stop() repairs all, however far
start() came."""

import json
import os
import random
import signal
import sys
import tempfile
import time
import unittest
from unittest import mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from lab import found, network  # noqa: E402
from nemeses.base import shared  # noqa: E402
from nemeses.clock import told  # noqa: E402
from nemeses.disk import Disk  # noqa: E402
from nemeses.keys import has_read, ids_in  # noqa: E402
from nemeses.names import by_name  # noqa: E402
from nemeses.victims import Held, across, choose, halves, ring  # noqa: E402

NAMES = ["r1", "r2", "r3", "r4", "r5"]
# Those on real processes, files and sockets are in faults_story.py.
REAL = ("clock-", "descriptors", "disk-", "dns-", "member-", "memory", "rotate-keys")


REAL_SLEEP = time.sleep  # other sleeps take no time here


class Victims(unittest.TestCase):
    def test_one_router_always_stays_without_a_fault(self):
        for seed in range(200):
            rng = random.Random(seed)
            held = set(rng.sample(NAMES, rng.randint(0, 5)))
            chosen = choose(rng, NAMES, held, rng.randint(1, 5))
            self.assertFalse(held & set(chosen))
            if len(held) < 4:
                self.assertTrue(chosen)
            if chosen:
                self.assertTrue(set(NAMES) - held - set(chosen))

    def test_the_last_router_without_a_fault_is_not_chosen(self):
        self.assertEqual(choose(random.Random(1), ["r1"], set(), 3), [])
        self.assertEqual(choose(random.Random(1), NAMES, set(NAMES[:4]), 3), [])

    def test_two_faults_never_have_the_same_victim(self):
        held, rng = Held(), random.Random(1)
        one, other = held.take("kill", rng, NAMES, 2), held.take("pause", rng, NAMES, 2)
        self.assertFalse(set(one) & set(other))
        self.assertFalse(held.take_this("roll", one[0], NAMES))
        held.drop("kill")
        self.assertTrue(held.take_this("roll", one[0], NAMES))

    def test_the_last_router_without_a_fault_cannot_be_taken(self):
        held = Held()
        for name in NAMES[:4]:
            self.assertTrue(held.take_this("roll", name, NAMES))
        self.assertFalse(held.take_this("roll", "r5", NAMES))
        held.drop("roll", "r1")
        self.assertTrue(held.take_this("roll", "r5", NAMES))

    def test_halves_have_one_of_each_kind(self):
        for seed in range(50):
            one, other = halves(random.Random(seed), NAMES, ["e1", "e2"])
            self.assertEqual(sorted(one + other), sorted(NAMES + ["e1", "e2"]))
            for side in (one, other):
                self.assertEqual({n[0] for n in side}, {"r", "e"})

    def test_in_a_ring_each_has_two_neighbours(self):
        cut = {frozenset(p) for p in ring(random.Random(3), NAMES)}
        for name in NAMES:
            self.assertEqual(sum(1 for o in NAMES if o != name and frozenset((name, o)) not in cut), 2)
        self.assertEqual(ring(random.Random(3), NAMES[:3]), [])

    def test_pairs_across_two_groups(self):
        self.assertEqual(across(["r1"], ["r2", "r3"]), [("r1", "r2"), ("r1", "r3")])


class Readings(unittest.TestCase):
    def test_the_log_shows_which_keys_a_router_has_read(self):
        ids = ids_in("key in use: 074c0cec, accepted too: 7a0f0823")
        lines = [json.dumps({"event": "cluster_key_held", "ids": "074c0cec"}), "no JSON"]
        self.assertFalse(has_read(lines, ids))
        lines.append(json.dumps({"event": "cluster_key_read", "ids": "7a0f0823,074c0cec"}))
        self.assertTrue(has_read(lines, ids))

    def test_a_routers_command_with_names_for_addresses(self):
        command = ["grapevine", "--join", "10.0.0.1:7490", "--listen", "0.0.0.0:8080", "--replica", "http://10.0.0.9"]
        self.assertEqual(by_name(command, 8000, 7490, "10.0.0.53"), [
            "grapevine", "--listen", "0.0.0.0:8080", "--join", "spare1.jepsen:7490", "--replica-dns", "spare1.jepsen:8000",
            "--join", "spare2.jepsen:7490", "--replica-dns", "spare2.jepsen:8000", "--join", "routers.jepsen:7490",
            "--replica-dns", "engines.jepsen:8000", "--replica-dns-interval", "500ms", "--dns-server", "10.0.0.53"])

    def test_a_clocks_offset_in_words(self):
        self.assertEqual([told(ms) for ms in (-50, 900, 7500, -3600000)],
                         ["50 ms behind", "900 ms ahead", "7.5 s ahead", "1 h behind"])


def wait_for(condition, what=""):
    end = time.monotonic() + 30
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("waited 30 s in vain: %s" % what)
        REAL_SLEEP(0.005)


class Tired(Exception):
    """From a step on that the test chooses, all harmful operations fail."""


class World:
    """Counted operations on machines. `left`: harms still possible; None: any number."""

    left, harms = None, 0

    def harm(self):
        self.harms += 1
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Tired


class Host:
    def __init__(self, world, name, address):
        self.world, self.name, self.address, self.mtu, self.tables = world, name, address, 1500, set()

    def nft(self, text):
        table = text.split()[2]
        if "delete table" in text:
            self.tables.discard(table)
        else:
            self.world.harm()
            self.tables.add(table)

    def run(self, *argv):
        if argv[:3] == ("ip", "link", "set"):
            if argv[-1] != "1500":
                self.world.harm()
            self.mtu = int(argv[-1])
        return "2: eth0: <UP> mtu %d qdisc" % self.mtu

    def move(self, address):
        self.address = address


class Process:
    port, gossip_port = 8000, 7490

    def __init__(self, world, name, number):
        self.world, self.name, self.host = world, name, Host(world, name, "10.0.0.%d" % number)
        self.alive, self.stopped, self.failing, self.build, self.args, self.wrap = True, False, False, "build", [], []
        self.env, self.wishes = {}, []

    @property
    def address(self):
        return self.host.address

    def signal(self, number):
        if number == signal.SIGCONT:
            self.stopped = False
            return
        self.world.harm()
        if number == signal.SIGSTOP:
            self.stopped = True
        else:
            self.alive = False

    def start(self):
        self.alive = True

    def wait(self, timeout=None):
        return None if self.alive else 0

    def kill(self):
        self.signal(signal.SIGKILL)

    def restart(self):
        self.kill()
        self.start()

    def admin(self, method, path, body=None, timeout=5):
        return 200, {}

    def control(self, path, body):
        self.wishes.append(body)
        if body.get("mode") == "none" and "health" not in body:
            self.failing = False
            return
        self.world.harm()
        self.failing = path == "/sim/fail"

    def state(self):
        return self.alive, self.stopped, self.failing, self.build, self.wrap, self.host.mtu, self.host.tables


class Recorder:
    pass


class Wire:
    """The real layer, on a wire that only listens."""

    def __init__(self, world):
        self.world, self.links = world, {}
        self.layer = network.Layer(self)
        self.lock = self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def update(self, pairs):
        for pair in pairs:
            self.links.pop(pair, None)
            if self.layer.links.get(pair):
                self.world.harm()
                self.links[pair] = self.layer.links[pair]


class Service:
    build = "build"

    def __init__(self):
        self.world, self.recorder = World(), Recorder()
        self.whole_wire = Wire(self.world)
        self.wire = self.whole_wire.layer
        self.routers = [Process(self.world, "r%d" % i, i) for i in range(1, 6)]
        self.engines = [Process(self.world, "e%d" % i, 20 + i) for i in range(1, 5)]
        self.balancer = Process(self.world, "lb", 30)
        self.clients = [Host(self.world, "c1", "10.0.0.40")]
        for r in self.routers:
            r.service = self

    def state(self):
        return [p.state() for p in self.routers + self.engines + [self.balancer]], self.whole_wire.links, \
            {n for names in shared(self, Held).by.values() for n in names}


class Stopped(unittest.TestCase):
    """However far start() came."""

    def setUp(self):
        patch = mock.patch("nemeses.addresses.time.sleep")
        patch.start()
        self.addCleanup(patch.stop)

    def played(self):
        return {n: c for n, c in found.nemeses().items() if not n.startswith(REAL) and n != "upgrade"}

    def test_stop_repairs_every_fault(self):
        for name, cls in self.played().items():
            for seed in range(8):
                service, nemesis = Service(), cls()
                before = service.state()
                about = nemesis.start(service, random.Random(seed))
                wait_for(lambda: service.world.harms > 0, name)
                nemesis.stop(service)
                self.assertEqual(service.state(), before, name)
                self.assertTrue(about["hosts"] and about["text"], name)

    def test_stop_repairs_a_fault_whose_start_failed(self):
        for name, cls in self.played().items():
            for seed in range(4):
                for left in range(6):
                    service, nemesis = Service(), cls()
                    before = service.state()
                    service.world.left = left
                    try:
                        nemesis.start(service, random.Random(seed))
                    except Tired:
                        service.world.left = None
                    try:
                        nemesis.stop(service)
                    except Tired:  # raised by its own thread
                        pass
                    self.assertEqual(service.state(), before, (name, left))

    def test_an_engine_without_any_answer_does_not_serve(self):
        """Probes detect such an engine, so no client has to wait for it as for a slow one."""
        for name, serves in (("engine-mute", False), ("engine-choke", False), ("engine-hang", True)):
            for seed in range(8):
                service, nemesis = Service(), found.nemeses()[name]()
                about = nemesis.start(service, random.Random(seed))
                nemesis.stop(service)
                self.assertEqual((about["serves"], about["wish"].get("health") in (True, "hang")), (serves, not serves))

    def test_an_engine_chokes_in_two_steps(self):
        """The engine is down when it goes silent: that state must not remain when it is well again."""
        service, nemesis = Service(), found.nemeses()["engine-choke"]()
        nemesis.NO_S = 0
        chosen = nemesis.start(service, random.Random(1))["hosts"]
        wait_for(lambda: all(len(e.wishes) == 2 for e in service.engines if e.name in chosen))
        self.assertEqual([e.wishes for e in service.engines if e.name in chosen], [
            [{"mode": "none", "health": "503"}, {"mode": "stuck", "health": "hang"}]] * len(chosen))
        nemesis.stop(service)
        self.assertEqual([e.wishes[2:] for e in service.engines if e.name in chosen], [[{"mode": "none"}]] * len(chosen))

    def test_a_choking_engine_is_repaired_between_its_steps(self):
        service, nemesis = Service(), found.nemeses()["engine-choke"]()
        chosen = nemesis.start(service, random.Random(1))["hosts"]
        nemesis.stop(service)
        self.assertEqual([e.wishes for e in service.engines if e.name in chosen], [
            [{"mode": "none", "health": "503"}, {"mode": "none"}]] * len(chosen))

    def test_one_protocol_of_gossip_is_filtered_at_both_ends(self):
        for name, protocol in (("gossip-tcp", "tcp"), ("gossip-udp", "udp"), ("gossip-join", "tcp")):
            for seed in range(8):
                service, nemesis, told = Service(), found.nemeses()[name](), {}
                with mock.patch.object(Host, "nft", lambda host, text: told.setdefault(host.name, text)):
                    router, = nemesis.start(service, random.Random(seed))["hosts"]
                    nemesis.stop(service)
                self.assertEqual(set(told), {r.name for r in service.routers})
                for host, text in told.items():
                    of = "ip saddr %s " % service.routers[int(router[1:]) - 1].address if host != router else ""
                    self.assertRegex(text, r"(?m)^ *%s%s dport 7490 (drop|reject with )" % (of, protocol))

    @mock.patch("nemeses.rolling.built", lambda variant: variant)
    def test_another_faults_victim_returns_from_an_upgrade_with_this_version(self):
        service, nemesis = Service(), found.nemeses()["upgrade"]()
        one, held = service.routers[:2]
        nemesis.later_version(one)
        nemesis.later_version(held)
        shared(service, Held).take_this("kill", held.name, NAMES)
        held.alive = False
        nemesis.back(service)
        self.assertEqual([(r.build, r.env, r.alive) for r in service.routers], [("build", {}, r is not held) for r in service.routers])
        self.assertEqual(service.world.harms, 1)  # one was restarted
        self.assertEqual(shared(service, Held).all(), {held.name})
        held.start()
        self.assertEqual((held.build, held.env), ("build", {}))

    def test_the_log_on_the_small_disk_is_kept(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch("nemeses.disk.subprocess.run"):
            service = Service()
            service.folder, log = folder, os.path.join(folder, "r5.log")
            service.routers[-1].log = log
            disk = Disk(service)
            with open(disk.router.log, "w") as f:
                f.write("a line\n")
            open(disk.ballast, "w").close()
            for _ in range(2):  # again, where the ballast is gone
                disk.empty()
            with open(log) as f:
                self.assertEqual(f.read(), "a line\n")
            self.assertFalse(os.path.exists(disk.ballast))

    def test_a_nemesis_can_be_used_again(self):
        service, nemesis = Service(), found.nemeses()["kill"]()
        for seed in range(5):
            self.assertTrue(nemesis.start(service, random.Random(seed))["hosts"])
            nemesis.stop(service)

    def test_pairs_of_faults_leave_a_router_and_an_engine(self):
        names = ("kill", "pause", "term", "kill-engine", "pause-engine", "engine-hang", "refuse")
        known = {n: c for n, c in self.played().items() if n in names}
        for one in known:
            for other in known:
                service, rng = Service(), random.Random(7)
                hurt = known[one]().start(service, rng)["hosts"] + known[other]().start(service, rng)["hosts"]
                self.assertEqual(len(hurt), len(set(hurt)), (one, other))
                self.assertTrue({p.name for p in service.routers} - set(hurt))
                self.assertTrue({p.name for p in service.engines} - set(hurt))


if __name__ == "__main__":
    unittest.main()
