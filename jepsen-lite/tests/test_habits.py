"""Permanent habits of engines."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lab import habits  # noqa: E402

NAMES = ["e1", "e2", "e3", "e4"]


class Drawn(unittest.TestCase):
    def test_a_seed_draws_the_same_habits(self):
        self.assertEqual(habits.draw(7, NAMES), habits.draw(7, NAMES))
        self.assertNotEqual(habits.draw(7, NAMES), habits.draw(8, NAMES))

    def test_each_habit_is_drawn_and_about_half_have_none(self):
        drawn = [h for seed in range(100) for h in habits.draw(seed, NAMES).values()]
        self.assertEqual({o for h in drawn for o in h}, {
            "silence", "silence-after", "silence-share", "metrics-digits", "metrics-steps", "metrics-at-end", "metrics-missing",
            "framing", "host-name", "max-model-len"})
        self.assertTrue(120 < sum(not h for h in drawn) < 280)

    def test_one_engine_has_the_whole_context(self):
        for seed in range(100):
            self.assertTrue(any("max-model-len" not in h for h in habits.draw(seed, NAMES).values()))
            self.assertNotIn("max-model-len", habits.draw(seed, ["e1"])["e1"])

    def test_no_first_token_is_late_where_there_are_limits(self):
        for seed in range(200):
            for h in habits.draw(seed, NAMES, limited=True).values():
                self.assertLessEqual(float(h.get("silence", 0)), 1.5)
                self.assertNotIn("giant", h.get("framing", ""))

    def test_an_empty_host_name_becomes_the_address(self):
        self.assertEqual(habits.as_args({"host-name": "", "silence": "1.0"}, "10.77.2.1"),
                         ["--host-name=10.77.2.1", "--silence=1.0"])


if __name__ == "__main__":
    unittest.main()
