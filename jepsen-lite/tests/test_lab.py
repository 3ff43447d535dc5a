"""The lab on a real kernel: what the wire does to packets, and that nothing is left of a run, however it ends.

Needs root and the programs in the folder BUILD (build); else it says so and is skipped."""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))

from lab import main, network  # noqa: E402

BUILD = os.environ.get("BUILD", "build")
RUN = os.path.join(HERE, "..", "run")
LIMIT = 60


def wait_for(condition, what):
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("waited %d s for: %s" % (LIMIT, what))
        time.sleep(0.02)


def room_of(pid):
    try:
        return os.readlink("/proc/%s/ns/pid" % pid)
    except OSError:
        return None


def inside(room):
    """Processes in that process namespace."""
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and room_of(pid) == room]


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(p) for p in f.read().split()]


def networks(pids):
    out = set()
    for pid in pids:
        try:
            out.add(os.readlink("/proc/%s/ns/net" % pid))
        except OSError:
            pass
    return out


class Lab(unittest.TestCase):
    def setUp(self):
        why = main.lacking(main.arguments(["--build", BUILD])[1])
        if why:
            self.skipTest(why)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def test_the_wire(self):
        told = subprocess.run(main.ROOM + [sys.executable, os.path.join(HERE, "wire_story.py"), BUILD],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT * 4)
        self.assertEqual(told.returncode, 0, told.stdout)

    def begin(self):
        """A run that is under way, and the process namespace that all of it is in."""
        out = os.path.join(self.folder.name, "out")
        run = subprocess.Popen([sys.executable, RUN, "--workload", "service", "--nemesis", "none", "--routers", "2",
                                "--engines", "2", "--seconds", "600", "--build", BUILD, "--out", out],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(run.stdout.close)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)

        def asked():
            self.assertIsNone(run.poll(), "it ended")
            try:
                with open(os.path.join(out, "history.jsonl")) as f:
                    return "service.chat" in f.read()
            except OSError:
                return False

        wait_for(asked, "the first request")
        room = room_of(children(children(run.pid)[0])[0])
        self.assertNotEqual(room, room_of("self"))
        pids = inside(room)
        self.assertGreaterEqual(len(pids), 1 + 1 + 2 + 2 + 1)  # itself, the wire, routers, engines, the balancer
        return run, room, networks(pids)

    def nothing_is_left(self, room, nets):
        wait_for(lambda: not inside(room), "processes to be gone: %s" % inside(room))
        self.assertFalse(nets & networks(p for p in os.listdir("/proc") if p.isdigit()))

    def test_nothing_is_left_of_a_run_that_is_killed(self):
        run, room, nets = self.begin()
        run.kill()
        self.nothing_is_left(room, nets)

    def test_nothing_is_left_of_a_run_that_is_interrupted(self):
        run, room, nets = self.begin()
        run.send_signal(signal.SIGINT)
        said, _ = run.communicate(timeout=LIMIT)
        self.assertEqual(run.returncode, 130, said)
        self.assertIn("interrupted", said)
        self.nothing_is_left(room, nets)


class Layers(unittest.TestCase):
    def test_what_happens_to_a_link_is_what_all_faults_do(self):
        self.assertEqual(network.together([{}, {"cut": 1}, {"cut": 0, "delay_ms": 5}, {"delay_ms": 7}]),
                         {"cut": 1, "delay_ms": 12})
        self.assertAlmostEqual(network.together([{"loss": 0.5}, {"loss": 0.2}])["loss"], 0.6)
        self.assertEqual(network.together([{"rate_kbit": 500}, {"rate_kbit": 100}, {"mtu": 900}]),
                         {"rate_kbit": 100, "mtu": 900})


if __name__ == "__main__":
    unittest.main()
