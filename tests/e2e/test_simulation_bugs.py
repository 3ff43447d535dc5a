"""The known bugs that the simulation has to catch, each in the profile that provokes it (docs/simulation.md)."""
import os
import unittest

from test_simulation import BUILD, simulate

# With the bugs compiled in. Only the ordinary build makes it.
SIM_WITH_BUGS = os.path.join(BUILD, "bugs", "tests", "sim")


class Bugs(unittest.TestCase):
    def test_known_bugs_are_caught(self):
        if not os.path.exists(SIM_WITH_BUGS):
            self.skipTest("skipped: the simulator with bugs is not built for this variant")
        # A change of the code is another run for every seed: of so many that one must, one has to do.
        status, text = simulate("caught", program=SIM_WITH_BUGS)
        self.assertEqual(status, 0, text)


if __name__ == "__main__":
    unittest.main()
