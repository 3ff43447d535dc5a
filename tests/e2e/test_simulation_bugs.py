"""The known bugs that the simulation has to catch, each in the profile that provokes it (docs/simulation.md)."""
import os
import re
import unittest

from test_simulation import BUILD, simulate

# With the bugs compiled in. Only the ordinary build makes it.
LAB = os.path.join(BUILD, "lab", "tests", "sim")


class Bugs(unittest.TestCase):
    def setUp(self):
        if not os.path.exists(LAB):
            self.skipTest("skipped: the simulator with bugs is not built for this variant")

    def test_without_a_bug_the_lab_build_equals_the_ordinary_build(self):
        for run in (("run", 2, "nodes=4", "seconds=5"), ("run", 5, "profile=service")):
            with self.subTest(run):
                ordinary, lab = (re.search(r"trace ([0-9a-f]{16})", simulate(*run, **how)[1]).group(1)
                                 for how in ({}, {"program": LAB}))
                self.assertEqual(ordinary, lab)

    def test_known_bugs_are_caught(self):
        # A change of the code changes every seed's run, so at least one run of a number must catch each bug.
        status, text = simulate("caught", program=LAB)
        self.assertEqual(status, 0, text)


if __name__ == "__main__":
    unittest.main()
