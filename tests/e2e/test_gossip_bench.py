"""The bench of gossip measures real nodes: they start, and what it finds is right. It had crashed at the start of each node for
weeks, as no test ran it."""

import subprocess
import unittest

from lib import LIMIT, binary


class GossipBench(unittest.TestCase):
    def test_what_it_measures_is_right(self):
        p = subprocess.run([binary("tests/bench/gossip-bench"), "--quick", "--rounds", "1", "reconcile", "killed"],
                           capture_output=True, text=True, timeout=5 * LIMIT)
        self.assertEqual((p.returncode, p.stderr), (0, ""), p.stdout)
        self.assertNotIn("WRONG", p.stdout)
        self.assertRegex(p.stdout, r"16 routers: longest +\d")


if __name__ == "__main__":
    unittest.main()
