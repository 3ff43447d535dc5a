"""The table of negative controls, the bugs that there are, and the rules that there are: none without the others."""

import os
import re
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))

import bugs  # noqa: E402
from lab import found  # noqa: E402

with open(os.path.join(bugs.TOP, "docs", "jepsen-lite.md"), encoding="utf-8") as page:
    PAGE = page.read()


def rules_of(page):
    """"checker: rule" of each row of its table; a row without a checker is of the one above."""
    out, checker = set(), None
    for name, rule in re.findall(r"^\| ([a-z]*) ?\| ([a-z ]+) \| [^|]+ \|$", page, re.M):
        checker = name or checker
        out.add("%s: %s" % (checker, rule))
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
        self.assertEqual(simulated | real, set(bugs.known()))

    def test_each_control_names_rules_that_there_are(self):
        there = rules_of(PAGE)
        self.assertIn("resources: descriptors", there)
        self.assertIn("service: needless cut", there)
        for c in bugs.TABLE:
            self.assertTrue(c.rules, c.bug)
            self.assertEqual(set(c.rules) - there, set(), c.bug)

    def test_each_control_names_what_can_be_run(self):
        workloads, nemeses = found.workloads(), found.nemeses()
        for c in bugs.TABLE:
            self.assertEqual(set(c.workload.split(",")) - set(workloads), set(), c.bug)
            self.assertEqual(set(c.nemesis.split(",")) - set(nemeses) - {"none"}, set(), c.bug)
            always = {"processes", "resources", "rest"}
            self.assertEqual({r.partition(":")[0] for r in c.rules} - set(c.workload.split(",")) - always, set(), c.bug)


    def test_the_page_has_each_bug_where_it_belongs(self):
        section = PAGE.partition("## It can lose")[2].partition("\n## ")[0]
        for c in bugs.TABLE:
            self.assertRegex(section, r"\n\| `%s` \| %s \|" % (c.bug, re.escape(bugs.known()[c.bug])))
        for why, names in bugs.REASONS.items():
            self.assertIn("\n| %s | %s |" % (", ".join("`%s`" % n for n in names), why), section)


class Caught(unittest.TestCase):
    def test_by_the_first_of_its_rules(self):
        control = bugs.Control("X", "load", "none", "load: stuck", "load: sum")
        self.assertIsNone(control.caught_by([{"checker": "load", "rule": "dead", "t": 1},
                                             {"checker": "rest", "rule": "sum", "t": 1}]))
        anomalies = [{"checker": "load", "rule": "sum", "t": 9}, {"checker": "load", "rule": "stuck", "t": 3}]
        self.assertEqual(control.caught_by(anomalies)["t"], 3)


if __name__ == "__main__":
    unittest.main()
