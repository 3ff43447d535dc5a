"""Processes that ended, with or without being asked to."""

import signal
import unittest

from checkers.processes import check
from story import Story


class Processes(unittest.TestCase):
    def setUp(self):
        self.s = Story("service")

    def rules(self):
        return [a.rule for a in check(self.s.history())]

    def exit(self, t, process, status, asked=""):
        self.s.event(t, process, "exit", life=1, status=status, asked=asked)

    def test_all_goes_on(self):
        self.assertEqual(self.rules(), [])

    def test_killed_by_a_fault(self):
        self.s.fault(10, 12, "kill", "r1")
        self.exit(10.1, "r1", -signal.SIGKILL, "SIGKILL")
        self.assertEqual(self.rules(), [])

    def test_ends_by_itself(self):
        self.s.fault(10, 12, "kill", "r2")
        self.exit(10.1, "r1", 0)
        self.assertEqual(self.rules(), ["crash"])

    def test_an_engine_that_ends_by_itself(self):
        self.exit(10.1, "e1", 1)
        self.assertEqual(self.rules(), ["crash"])

    def test_out_of_memory_because_a_fault_took_it(self):
        self.s.fault(10, 12, "memory", "r1")
        self.exit(11, "r1", -signal.SIGKILL)
        self.assertEqual(self.rules(), [])

    def test_a_segmentation_fault_is_excused_by_nothing(self):
        self.s.fault(10, 12, "memory", "r1")
        self.exit(11, "r1", -signal.SIGSEGV)
        self.exit(11, "r2", -signal.SIGABRT, "SIGTERM")
        self.assertEqual(self.rules(), ["crash", "crash"])

    def test_does_not_end_when_told_to(self):
        self.s.event(20, "lab", "stop")
        self.exit(20.1, "r1", 0, "SIGINT")
        self.exit(25, "r2", -signal.SIGKILL, "SIGKILL")
        self.assertEqual(self.rules(), ["stays"])

    def test_has_a_bad_status_after_it_was_told_to_end(self):
        self.exit(10, "r1", 1, "SIGTERM")
        self.exit(10, "e1", 1, "SIGTERM")
        self.assertEqual(self.rules(), ["crash"])

    def test_a_partition_ends_no_process(self):
        self.s.fault(10, 12, "partition-one", "r1", "r2", links=[["r1", "r2"]])
        self.exit(11, "r1", 1)
        self.assertEqual(self.rules(), ["crash"])

    def test_goes_on_after_sigterm_until_it_is_killed(self):
        for told_s, expected in ((2, []), (40, ["stays"])):
            self.setUp()
            self.s.event(90, "r1", "exit", life=1, status=-signal.SIGKILL, asked="SIGKILL", told_s=told_s)
            self.assertEqual(self.rules(), expected)

    def test_half_a_line_is_what_a_full_disk_left(self):
        self.s.event(10, "r1", "log", text='{"level":"info","ev')
        self.s.event(11, "r1", "log", text="   ")
        self.s.event(12, "r1", "log", text="double free or corruption (fasttop)")
        self.assertEqual(self.rules(), ["said"])

    def test_says_what_no_router_should(self):
        self.s.event(9, "r1", "log", level="info", event="start")
        self.s.event(10, "r1", "log", text="grapevine: bug: crdt/index.c:7: CHECK(a == b) failed")
        self.assertEqual(self.rules(), ["said"])
        self.s.rows[0]["value"]["proxy"] = ""  # as the lab writes it
        self.assertEqual(self.rules(), ["said"])

    def test_another_proxy_logs_as_it_likes(self):
        self.s.event(10, "r1", "log", text="[WARNING]  (32) : Server engines/10.77.2.2-8000 is DOWN, reason: Layer7 timeout")
        self.assertEqual(self.rules(), ["said"])
        self.s.rows[0]["value"]["proxy"] = "haproxy {port} {folder} {engines}"
        self.assertEqual(self.rules(), [])


if __name__ == "__main__":
    unittest.main()
