"""A service that does not come to rest is not well."""

import unittest

from checkers.rest import check, figures
from story import Story


class Rest(unittest.TestCase):
    def setUp(self):
        self.s = Story("service", rest_s=15)

    def test_a_calm_rest_is_right(self):
        self.s.rest(10)
        self.assertEqual(check(self.s.history()), [])

    def test_a_rest_that_is_not_calm_is_an_anomaly(self):
        self.s.rest(10)
        self.s.event(40, "lab", "rest", phase="begin", calm=False, waited_s=15.1, why="r2 has met r1")
        found = check(self.s.history())
        self.assertEqual([a.rule for a in found], ["restless"])
        self.assertIn("r2 has met r1", found[0].text)

    def test_figures(self):
        self.assertEqual(figures(self.s.history()), {})
        for t, waited in ((10, 0.1), (20, 3.5), (30, 0.2)):
            self.s.event(t, "lab", "rest", phase="begin", calm=True, waited_s=waited)
        self.assertEqual(figures(self.s.history()), {"rests": 3, "longest until calm, s": 3.5})


if __name__ == "__main__":
    unittest.main()
