"""The checker of lines that a router could not write."""

import unittest

from story import Story, rules
from checkers.logs import check, figures, written_since


class Logs(unittest.TestCase):
    def setUp(self):
        self.s = Story("service")
        self.s.fault(10, 20, "disk-frozen", "r2", excuses=False)

    def flood(self, there, after=4, before=1):
        self.s.event(19, "r2", "flood", life=1, prefix="flood-1-", asked=10, before=before, after=after)
        for i in range(there):
            self.s.event(20.1, "r2", "log", event="request", id="flood-1-%d" % i)
        self.s.event(20.1, "r2", "log", event="request", id="of a client")

    def rules(self, end=40):
        self.s.event(end, "lab", "stop")
        return rules(check(self.s.history()))

    def test_lost_lines_that_are_counted_are_right(self):
        self.flood(7)
        self.assertEqual(self.rules(), [])
        self.assertEqual(figures(self.s.history()), {"lines that were lost and counted": 3})

    def test_lost_lines_that_are_not_counted_are_an_anomaly(self):
        self.flood(6)
        self.assertEqual(self.rules(), ["lost"])

    def test_a_process_that_ends_may_lose_waiting_lines(self):
        self.flood(0)
        self.s.event(19.5, "r2", "exit", life=1, status=-9)
        self.assertEqual(self.rules(), [])

    def test_another_fault_of_the_disk_excuses_lost_lines(self):
        for fault, at in (("disk-frozen", 22), ("disk-full", 15)):
            self.setUp()
            self.flood(0)
            self.s.fault(at, 24, fault, "r2", excuses=False)
            self.assertEqual(self.rules(), [], fault)

    def test_a_router_without_a_later_line_proves_nothing(self):
        self.flood(0, after=None)
        self.assertEqual(self.rules(), [])
        self.setUp()
        self.flood(0)
        self.assertEqual(self.rules(end=22), [])

    def test_since_when_a_line_may_have_waited(self):
        self.assertEqual([written_since(self.s.history().faults(), *what) for what in (
            ("r2", 9), ("r2", 15), ("r2", 21.9), ("r2", 22.1), ("r1", 15))], [9, 10, 10, 22.1, 15])


if __name__ == "__main__":
    unittest.main()
