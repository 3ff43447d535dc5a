"""The command of another proxy, with its places filled in."""

import os
import signal
import sys
import threading
import types
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from lab import found, other  # noqa: E402

ENGINES = ["10.77.2.1:8000", "10.77.2.2:8000"]


class Words(unittest.TestCase):
    def test_engines_are_a_word_each_or_one_list(self):
        self.assertEqual(other.words("p {port} '{folder}/a b' {engines}", 8080, "r1", "/f", ENGINES),
                         ["p", "8080", "/f/a b"] + ENGINES)
        self.assertEqual(other.words("p --name={name} --to={engines}", 8080, "r1", "/f", ENGINES),
                         ["p", "--name=r1", "--to=10.77.2.1:8000,10.77.2.2:8000"])

    def test_a_proxy_drains_by_its_own_signal_and_the_history_has_sigterm(self):
        sent = []
        process = other.Other.__new__(other.Other)
        process.service = types.SimpleNamespace(options=types.SimpleNamespace(stop_signal=signal.SIGQUIT))
        process.lock, process.ended, process.asked = threading.RLock(), threading.Event(), ""
        process.popen = types.SimpleNamespace(pid=1, send_signal=sent.append)
        process.signal(signal.SIGTERM)
        self.assertEqual((sent, process.asked), ([signal.SIGQUIT], "SIGTERM"))

    def test_faults_that_only_grapevine_has_are_left_out(self):
        """Every name that is left out is one of a fault, and the faults of any proxy stay."""
        nemeses = found.nemeses()
        left_out = {n for n, c in nemeses.items() if other.own(c)}
        self.assertTrue({"kill", "pause-engine", "partition-one", "loss", "engine-hang"} <= set(nemeses) - left_out)
        for start in other.OWN:
            self.assertTrue([n for n in left_out if n.startswith(start)], start)


if __name__ == "__main__":
    unittest.main()
