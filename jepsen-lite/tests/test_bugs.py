"""The table of negative controls, the known bugs and the rules agree with each other."""

import argparse
import importlib.machinery
import os
import re
import sys
import types
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))

import bugs  # noqa: E402
from lab import found  # noqa: E402

loader = importlib.machinery.SourceFileLoader("program", os.path.join(HERE, "..", "bugs", "run"))
program = types.ModuleType("program")
program.__file__ = loader.path
loader.exec_module(program)
with open(os.path.join(bugs.TOP, "docs", "jepsen-lite.md"), encoding="utf-8") as page:
    PAGE = page.read()
with open(os.path.join(HERE, "..", "results.md"), encoding="utf-8") as page:
    RESULTS = page.read()


def rules_of(page):
    """"checker: rule" for each rule in the page's list. A checker may have several items."""
    out = set()
    section = page.partition("## Rules")[2].partition("\n## ")[0]
    for checker, rules in re.findall(r"^- \*\*([a-z]+)\*\*(?:, also)? \(([a-z, ]+)\): ", section, re.M):
        out.update("%s: %s" % (checker, rule) for rule in rules.split(", "))
    return out


class Table(unittest.TestCase):
    def test_each_bug_has_a_control_or_a_reason(self):
        controls = [c.bug for c in bugs.TABLE]
        self.assertEqual(len(controls), len(set(controls)), "a bug has two controls")
        self.assertEqual(set(controls) & set(bugs.UNSEEN), set(), "a bug has a control and a reason to have none")
        self.assertEqual(set(controls) | set(bugs.UNSEEN), set(bugs.known()))

    def test_each_bug_that_only_real_processes_show_has_a_control(self):
        self.assertEqual(set(bugs.known("BUG_REAL_MAP")) - {c.bug for c in bugs.TABLE}, set())

    def test_both_maps_are_read(self):
        simulated, real = set(bugs.known("BUG_MAP")), set(bugs.known("BUG_REAL_MAP"))
        self.assertIn("SKIP_FENCE", simulated)
        self.assertIn("RARE_PIECE", simulated)
        self.assertIn("UNSEALED", real)
        self.assertEqual(simulated & real, set())
        self.assertEqual(simulated | real | set(bugs.known("BUG_LIAR_MAP")), set(bugs.known()))

    def test_each_control_names_existing_rules(self):
        there = rules_of(PAGE)
        self.assertIn("resources: descriptors", there)
        self.assertIn("service: needless cut", there)
        for c in bugs.TABLE:
            self.assertTrue(c.rules, c.bug)
            self.assertEqual(set(c.rules) - there, set(), c.bug)

    def test_each_control_names_existing_workloads_and_nemeses(self):
        workloads, nemeses = found.workloads(), found.nemeses()
        for c in bugs.TABLE:
            self.assertEqual(set(c.workload.split(",")) - set(workloads), set(), c.bug)
            self.assertEqual(set(c.nemesis.split(",")) - set(nemeses) - {"none"}, set(), c.bug)
            always = {"logs", "processes", "ready", "resources", "rest"}
            self.assertEqual({r.partition(":")[0] for r in c.rules} - set(c.workload.split(",")) - always, set(), c.bug)

    def test_the_results_have_a_row_for_each_control(self):
        section = RESULTS.partition("## Known bugs")[2]
        self.assertEqual(re.findall(r"^\| `([A-Z_]+)` \|", section, re.M), [c.bug for c in bugs.TABLE])


class Judged(unittest.TestCase):
    """The program on faked runs: its verdict for each anomaly."""

    def judge(self, with_bug, without=(), bugs_only=False):
        runs = []

        class Controls(program.Controls):
            def run(self, control, bug, seed):
                runs.append((bug, seed))
                return list(with_bug.get(seed, ()) if bug != "NONE" else without), 40.0

        control = bugs.Control("DEAD_LOAD", "load", "kill", "load: dead")
        return Controls(argparse.Namespace(bugs_only=bugs_only)).judge(control, 5), runs

    DEAD, SUM = ({"checker": "load", "rule": r, "t": 1, "text": ""} for r in ("dead", "sum"))

    def test_a_bug_is_caught_and_the_run_without_a_bug_is_clean(self):
        row, runs = self.judge({5: [self.DEAD]})
        self.assertEqual((row["wrong"], row["by"], row["seconds"]), (None, "load: dead", 40.0))
        self.assertEqual(runs, [("DEAD_LOAD", 5), ("NONE", 5)])

    def test_the_next_seed_is_tried_while_time_is_left(self):
        row, _ = self.judge({6: [self.SUM, self.DEAD]})
        self.assertEqual((row["wrong"], row["by"], row["seconds"], row["seed"]), (None, "load: dead", 80.0, 6))

    def test_a_bug_that_is_not_caught_in_three_minutes_fails(self):
        row, runs = self.judge({8: [self.SUM]})
        self.assertEqual((row["wrong"], row["by"]), ("not caught, but there is load: sum", None))
        self.assertEqual([seed for bug, seed in runs if bug != "NONE"], [5, 6, 7, 8])

    def test_an_anomaly_without_the_bug_fails(self):
        for bugs_only in (False, True):
            row, runs = self.judge({5: [self.DEAD]}, [self.SUM], bugs_only)
            self.assertEqual((bool(row["wrong"]), len(runs)), (not bugs_only, 1 if bugs_only else 2))

    def test_bugs_that_the_makefile_names_have_controls(self):
        with open(os.path.join(bugs.TOP, "Makefile"), encoding="utf-8") as f:
            names = re.search(r"\$\(or \$\(BUGS\),([A-Z_ ]+)\)", f.read()).group(1).split()
        self.assertGreaterEqual(len(names), 3)
        self.assertEqual(set(names) - {c.bug for c in bugs.TABLE}, set())


class Caught(unittest.TestCase):
    def test_a_bug_is_caught_by_the_first_anomaly_of_its_rules(self):
        control = bugs.Control("X", "load", "none", "load: stuck", "load: sum")
        self.assertIsNone(control.caught_by([{"checker": "load", "rule": "dead", "t": 1},
                                             {"checker": "rest", "rule": "sum", "t": 1}]))
        anomalies = [{"checker": "load", "rule": "sum", "t": 9}, {"checker": "load", "rule": "stuck", "t": 3}]
        self.assertEqual(control.caught_by(anomalies)["t"], 3)


if __name__ == "__main__":
    unittest.main()
