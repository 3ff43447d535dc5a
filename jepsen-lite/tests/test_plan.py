"""The order of faults: the same from the same seed, each before any comes twice."""

import itertools
import os
import random
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import plan  # noqa: E402

NAMES = ["kill", "stop", "partition", "loss", "delay"]
PAIRS = {frozenset(p) for p in itertools.combinations(NAMES, 2)}
LONG = 10000


def take(count, seed=1, names=NAMES, seconds=LONG, **how):
    return list(itertools.islice(plan.episodes(seed, names, seconds, **how), count))


def names(episodes):
    return [frozenset(f.name for f in e.faults) for e in episodes]


class Plan(unittest.TestCase):
    def test_a_seed_determines_the_plan(self):
        self.assertEqual(repr(take(40)), repr(take(40)))
        self.assertEqual(repr(take(40)), repr(take(40, names=reversed(NAMES))))
        self.assertNotEqual(repr(take(40)), repr(take(40, seed=2)))

    def test_each_fault_and_then_each_pair_comes_before_any_comes_twice(self):
        all_of_it = names(take(2 * (5 + 10)))
        for part in all_of_it[:15], all_of_it[15:]:
            self.assertEqual(set(part[:5]), {frozenset([n]) for n in NAMES})
            self.assertEqual(set(part[5:]), PAIRS)

    def test_a_short_run_has_all_faults_in_pairs_at_once(self):
        got = names(take(3, seconds=10))
        self.assertEqual(frozenset().union(*got), set(NAMES))

    def test_a_short_run_has_short_faults(self):
        longest = [max(f.lasts for e in take(3, seconds=s) for f in e.faults) for s in (5, 12, LONG)]
        self.assertEqual(longest[0], plan.LASTS[0])
        self.assertLess(longest[1], plan.LASTS[1] * 0.9)
        self.assertGreater(longest[2], longest[1])

    def test_faults_are_paired_with_other_families_only(self):
        kinds = ["partition-ring", "partition-halves", "clock-skew", "clock-jump", "kill"]
        got = names(take(5 + 3, names=kinds))[5:]
        pairs = {frozenset(plan.family(n) for n in pair) for pair in got}
        self.assertEqual(pairs, {frozenset(p) for p in (("partition", "clock"), ("partition", "kill"), ("clock", "kill"))})
        for e in names(take(3, names=kinds, seconds=10)):
            self.assertEqual(len({plan.family(n) for n in e}), len(e))

    def test_faults_that_make_no_sense_together_are_not_paired(self):
        for seconds in (10, LONG):
            got = names(take(200, seconds=seconds, apart=[("kill", "stop"), ("stop", "loss")]))
            self.assertFalse({frozenset(["kill", "stop"]), frozenset(["stop", "loss"])} & set(got))

    def test_a_fault_lasts_within_its_own_limits(self):
        lasts = {"kill": (7, 9), "stop": (0.1, 0.1)}
        for e in take(100, lasts=lasts):
            for f in e.faults:
                least, most = lasts.get(f.name, plan.LASTS)
                self.assertTrue(least <= f.lasts <= most)
                self.assertLessEqual(f.after + f.lasts, e.seconds)

    def test_of_two_episodes_one_ends_with_a_rest(self):
        rests = [e.rest for e in take(100, seconds=20)]
        self.assertTrue(all(a != b for a, b in zip(rests[::2], rests[1::2])))
        self.assertEqual(set(rests[::2]), {True, False})

    def test_in_a_long_run_fewer_episodes_end_with_a_rest(self):
        rests = [e.rest for e in take(1000, seconds=36000)]
        self.assertTrue(200 < sum(rests) < 400)

    def test_a_long_run_has_time_for_all_pairs(self):
        many = ["fault%d" % i for i in range(28)]  # 28, and 378 in twos or 150 or so in threes
        for seconds, together in ((2000, 3), (3000, 3), (6000, 2), (9000, 2)):
            took, rests, met = 0, 0, {1: set(), 2: set(), 3: set()}
            for e in plan.episodes(1, many, seconds, {n: (3, 12) for n in many}):
                took += e.seconds + plan.MEND_S + (plan.REST_S if e.rest else 0)
                if took > seconds:
                    break
                rests += e.rest
                met[len(e.faults)].update(frozenset(p) for p in itertools.combinations([f.name for f in e.faults], 2))
            self.assertGreater(len(met[together]), 0.9 * 378, seconds)
            self.assertGreater(len(met[2] | met[3]), 0.99 * 378, seconds)
            self.assertGreater(rests, 10)

    def test_threes_have_each_allowed_pair_of_families_and_no_other(self):
        kinds = ["one-a", "one-b", "two", "three", "four", "five", "six", "seven"]
        apart = [("one-a", "two"), ("one-b", "two"), ("three", "four")]
        episodes = [e for e in take(100, names=kinds, seconds=250, lasts={n: (5, 5) for n in kinds}, apart=apart)]
        threes = episodes[8:8 + next(i for i, e in enumerate(episodes[8:]) if len(e.faults) == 1)]
        self.assertTrue(any(len(e.faults) == 3 for e in threes))
        pairs = [frozenset(map(plan.family, p)) for e in threes
                 for p in itertools.combinations([f.name for f in e.faults], 2)]
        self.assertEqual(len(set(pairs)), 7 * 6 // 2 - 2)
        self.assertFalse({frozenset(("one", "two")), frozenset(("three", "four")), frozenset(("one",))} & set(pairs))
        self.assertLess(len(threes), len(set(pairs)))

    def test_an_impossible_third_fault_costs_no_pair(self):
        """Before, if no fault could be the third, a pair with an unused fault counted as done."""
        for seed in range(20):
            pairs = [("one", "two"), ("two", "three")]
            got = plan.threes_of(pairs, ["one", "two", "three"], {frozenset(("one", "three"))}, random.Random(seed))
            self.assertEqual(set(map(frozenset, got)), set(map(frozenset, pairs)))

    def test_a_short_fault_comes_during_the_others(self):
        for e in take(60, lasts={"kill": (0.1, 0.1)}):
            for f in e.faults:
                if f.name == "kill" and len(e.faults) == 2:
                    self.assertTrue(all(o.after <= f.after for o in e.faults))

    def test_plans_of_one_fault_and_of_none(self):
        self.assertEqual(names(take(3, names=["kill"])), [frozenset(["kill"])] * 3)
        self.assertEqual(names(take(3, names=[])), [frozenset()] * 3)


if __name__ == "__main__":
    unittest.main()
