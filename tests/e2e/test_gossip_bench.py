"""The gossip bench measures real nodes: they start, and its results are right. Before this test the bench crashed at
the start of each node for weeks."""

import subprocess
import unittest

from lib import LIMIT, binary


class GossipBench(unittest.TestCase):
    def test_the_gossip_bench_finds_no_wrong_result(self):
        p = subprocess.run([binary("tests/bench/gossip-bench"), "--quick", "--rounds", "1", "reconcile", "killed"],
                           capture_output=True, text=True, timeout=5 * LIMIT)
        self.assertEqual((p.returncode, p.stderr), (0, ""), p.stdout)
        self.assertNotIn("WRONG", p.stdout)
        self.assertRegex(p.stdout, r"16 routers: longest +\d")


if __name__ == "__main__":
    unittest.main()
