"""The lab on a real kernel: what the wire does to packets, and that nothing is left of a run, however it ends.

Needs root and the programs in the folder BUILD (build); else it says so and is skipped."""

import contextlib
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))

from history import History  # noqa: E402
from lab import cgroup, main, network, process, runner  # noqa: E402

from test_nemeses import REAL  # noqa: E402

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

    def test_the_wire_affects_packets_as_set(self):
        told = subprocess.run(main.ROOM + [sys.executable, os.path.join(HERE, "wire_story.py"), BUILD],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT * 4)
        self.assertEqual(told.returncode, 0, told.stdout)

    def test_faults_begin_and_end(self):
        """Faults that need real processes, files and clocks begin and end."""
        if os.path.basename(BUILD) == "asan":
            self.skipTest("once is enough, in the ordinary build: what is under test is Python, and no sanitizer is preloaded")
        told = subprocess.run(main.ROOM + [sys.executable, os.path.join(HERE, "faults_story.py"), BUILD,
                                           self.folder.name, "(%s|upgrade)" % "|".join(REAL)],
                              env=dict(os.environ, **{main.INSIDE: str(os.getpid())}),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT * 4)
        self.addCleanup(cgroup.clean, os.getpid())
        self.assertEqual(told.returncode, 0, told.stdout)
        for name in REAL:
            self.assertRegex(told.stdout, "(?m)^(ok  |skipped )" + name)

    def begin(self, nemesis="none"):
        """A run that is under way, and the process namespace that all of it is in."""
        self.out = out = os.path.join(self.folder.name, "out")
        run = subprocess.Popen([sys.executable, RUN, "--workload", "service", "--nemesis", nemesis, "--routers", "2",
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
        """The number of a network that is gone is soon used again: what counts are the processes that were there."""
        pids = [p for p in os.listdir("/proc") if p.isdigit()]
        wait_for(lambda: not inside(room), "processes to be gone: %s" % inside(room))
        self.assertFalse(nets & networks(pids))

    def test_nothing_is_left_of_a_run_that_is_killed(self):
        run, room, nets = self.begin()
        run.kill()
        self.nothing_is_left(room, nets)

    def test_nothing_is_left_of_a_run_that_is_interrupted(self):
        memory = cgroup.find()
        run, room, nets = self.begin("memory-group")
        if memory is not None:
            group = memory.folder(run.pid)
            wait_for(lambda: os.path.exists(group), "a fault")
        self.assertTrue(os.path.exists(os.path.join(self.out, "cluster.key")))
        run.send_signal(signal.SIGINT)
        said, _ = run.communicate(timeout=LIMIT)
        self.assertEqual(run.returncode, 130, said)
        self.assertIn("interrupted", said)
        self.assertNotIn("Traceback", said)
        self.nothing_is_left(room, nets)
        self.assertFalse(os.path.exists(os.path.join(self.out, "cluster.key")))
        if memory is not None:
            self.assertFalse(os.path.exists(group))


    def test_another_proxy_is_started_asked_and_stopped(self):
        """Started, asked, stopped: HAProxy in the routers' place."""
        out = os.path.join(self.folder.name, "out")
        command = "%s {port} {folder} {engines}" % os.path.join(HERE, "..", "proxies", "haproxy")
        done = subprocess.run([sys.executable, RUN, "--workload", "service", "--nemesis", "none", "--routers", "2", "--engines",
                               "2", "--seconds", "5", "--build", BUILD, "--out", out, "--stop-signal", "USR1", "--command",
                               command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT * 4)
        self.assertNotEqual(done.returncode, 2, done.stdout)  # its clients' results are not tested here
        history = History.read(os.path.join(out, "history.jsonl"))
        answered = [o for o in history.operations("service.chat") if o.ended is not None and o.ended.type == "ok"]
        self.assertTrue(answered, done.stdout)
        self.assertEqual({e.process: e.value["build"] for e in history.events(f="start") if e.process.startswith("r")},
                         {"r1": command, "r2": command})


class Interrupted(unittest.TestCase):
    """An interrupt at any time: exit status 130, a line, no traceback, and no key."""

    def run_it(self, at):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)

        class Run(runner.Run):
            def __init__(self, *_):
                self.folder, self.missing, self.loads, self.stage = folder, [], None, None
                self.progress = mock.Mock()
                self.came("begin")

            def came(self, where):
                with open(os.path.join(folder, "cluster.key"), "w"):
                    pass
                if where == at:
                    os.kill(os.getpid(), signal.SIGINT)
                    time.sleep(LIMIT)  # the signal ends it

            def up(self):
                self.came("up")

            def episodes(self):
                self.came("episodes")

            def down(self):
                self.came("down")

            def judge(self, errors):
                self.came("judge")
                return 1 if errors else 0

        ended, said = mock.Mock(side_effect=SystemExit), io.StringIO()
        before = {n: signal.getsignal(n) for n in runner.ENDS}
        self.addCleanup(lambda: [signal.signal(n, h) for n, h in before.items()])
        with mock.patch.object(runner, "Run", Run), mock.patch.object(os, "_exit", ended), \
                contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
            self.assertEqual(runner.run(None, [], []), 0)
        return ended.call_args, said.getvalue(), os.listdir(folder)

    def test_a_run_can_be_interrupted_at_any_time(self):
        for at in ("up", "episodes", "down", "judge"):
            ended, said, left = self.run_it(at)
            self.assertEqual((ended, left), (mock.call(130), []), at)
            self.assertIn("interrupted; what there is so far: ", said)
        self.assertEqual(self.run_it("begin")[:2], (mock.call(130), "interrupted\n"))
        self.assertIsNone(self.run_it("never")[0])

    def test_the_first_error_is_reported_if_the_end_fails_too(self):
        class Run(runner.Run):
            def __init__(self):
                pass

            def up(self):
                raise OSError("no such program")

            def down(self):
                raise OSError("nothing to stop")

            def judge(self, errors):
                return [e.splitlines()[-1] for e in errors]

        self.assertEqual(Run().play(), ["OSError: no such program", "OSError: nothing to stop"])

    def test_a_program_that_cannot_be_started_is_not_alive(self):
        recorder = mock.Mock(now=lambda: 0.0)
        host = mock.Mock(processes=[], address="10.0.0.1")
        host.name, host.spawn.side_effect = "r1", FileNotFoundError("grapevine")
        p = process.Process(mock.Mock(folder="/tmp", recorder=recorder), host)
        p.port, p.command = 1, lambda build: ["grapevine"]
        self.assertRaises(FileNotFoundError, p.start)
        self.assertFalse(p.alive)
        self.assertFalse(p.signal(signal.SIGCONT))


class Layers(unittest.TestCase):
    def test_faults_of_one_link_add_up(self):
        self.assertEqual(network.together([{}, {"cut": 1}, {"cut": 0, "delay_ms": 5}, {"delay_ms": 7}]),
                         {"cut": 1, "delay_ms": 12})
        self.assertAlmostEqual(network.together([{"loss": 0.5}, {"loss": 0.2}])["loss"], 0.6)
        self.assertEqual(network.together([{"rate_kbit": 500}, {"rate_kbit": 100}, {"mtu": 900}]),
                         {"rate_kbit": 100, "mtu": 900})


if __name__ == "__main__":
    unittest.main()
