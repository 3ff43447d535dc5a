"""The deterministic simulation (tests/sim, docs/simulation.md): fixed seeds, and the known bugs that
it has to catch, each with a seed that is known to catch it."""
import os
import re
import subprocess
import unittest

BUILD = os.environ.get("BUILD", "build")
SIM = os.path.join(BUILD, "tests", "sim")
# With the bugs compiled in. Only the ordinary build makes it.
SIM_WITH_BUGS = os.path.join(BUILD, "sim", "tests", "sim")

# Bug -> a seed that catches it soon (or the next ones of the same profile do);
# `make sim-controls` looks for more.
CONTROLS = {
    "SKIP_FENCE": 1,
    "SKIP_FLOOR": 1,
    "FUTURE_CLAMP": 2,
    "TIE_BY_ARRIVAL": 3,
    "DEAD_LOAD": 3,
    "NO_GAP_REPAIR": 1,
    "GAP_SKIPPED": 1,
    "NO_RECONCILE": 3,
    "SKETCH_STALE": 1,
    "REPLAY_ACCEPTED": 1,
    "NO_REFUTE": 10,
    "EPOCH_IGNORED": 1,
    "FLOOR_UNANNOUNCED": 11,
    "LOG_GAP_APPLIED": 2,
    "RELAY_NOT_FORWARDED": 16,
    "SNAPSHOT_VECTOR_LATE": 13,
}


def simulate(*words, program=SIM):
    done = subprocess.run([program, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=280)
    return done.returncode, done.stdout


class Simulation(unittest.TestCase):
    def test_same_seed_same_trace(self):
        traces = []
        for _ in range(2):
            status, text = simulate("run", "2", "nodes=4", "seconds=5")
            self.assertEqual(status, 0, text)
            traces.append(re.search(r"trace ([0-9a-f]{16})", text).group(1))
        self.assertEqual(traces[0], traces[1])

    def test_fixed_seeds(self):
        status, text = simulate("seeds", "1", "8")
        self.assertEqual(status, 0, text)

    def test_many_nodes(self):
        status, text = simulate("run", "64", "nodes=64", "profile=storm", "seconds=2")
        self.assertEqual(status, 0, text)

    def test_known_bugs_are_caught(self):
        if not os.path.exists(SIM_WITH_BUGS):
            self.skipTest("skipped: the simulator with bugs is not built for this variant")
        words = ["%s=%d" % (bug, seed) for bug, seed in CONTROLS.items()]
        status, text = simulate("controls", *words, program=SIM_WITH_BUGS)
        self.assertEqual(status, 0, text)


if __name__ == "__main__":
    unittest.main()
