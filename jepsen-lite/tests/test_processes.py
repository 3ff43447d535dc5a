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

    def test_processes_that_go_on_are_right(self):
        self.assertEqual(self.rules(), [])

    def test_a_router_killed_by_a_fault_is_right(self):
        self.s.fault(10, 12, "kill", "r1")
        self.exit(10.1, "r1", -signal.SIGKILL, "SIGKILL")
        self.assertEqual(self.rules(), [])

    def test_a_router_that_ends_by_itself_is_a_crash(self):
        self.s.fault(10, 12, "kill", "r2")
        self.exit(10.1, "r1", 0)
        self.assertEqual(self.rules(), ["crash"])

    def test_an_engine_that_ends_by_itself_is_a_crash(self):
        self.exit(10.1, "e1", 1)
        self.assertEqual(self.rules(), ["crash"])

    def test_a_memory_fault_excuses_a_kill(self):
        self.s.fault(10, 12, "memory", "r1")
        self.exit(11, "r1", -signal.SIGKILL)
        self.assertEqual(self.rules(), [])

    def test_a_segmentation_fault_is_excused_by_nothing(self):
        self.s.fault(10, 12, "memory", "r1")
        self.exit(11, "r1", -signal.SIGSEGV)
        self.exit(11, "r2", -signal.SIGABRT, "SIGTERM")
        self.assertEqual(self.rules(), ["crash", "crash"])

    def test_a_router_that_does_not_end_with_the_run_is_an_anomaly(self):
        self.s.event(20, "lab", "stop")
        self.exit(20.1, "r1", 0, "SIGINT")
        self.exit(25, "r2", -signal.SIGKILL, "SIGKILL")
        self.assertEqual(self.rules(), ["stays"])

    def test_a_bad_exit_status_after_sigterm_is_a_crash(self):
        self.exit(10, "r1", 1, "SIGTERM")
        self.exit(10, "e1", 1, "SIGTERM")
        self.assertEqual(self.rules(), ["crash"])

    def test_a_partition_does_not_excuse_an_exit(self):
        self.s.fault(10, 12, "partition-one", "r1", "r2", links=[["r1", "r2"]])
        self.exit(11, "r1", 1)
        self.assertEqual(self.rules(), ["crash"])

    def test_a_router_that_outlives_sigterm_for_long_is_an_anomaly(self):
        for told_s, expected in ((2, []), (40, ["stays"])):
            self.setUp()
            self.s.event(90, "r1", "exit", life=1, status=-signal.SIGKILL, asked="SIGKILL", told_s=told_s)
            self.assertEqual(self.rules(), expected)

    def test_half_a_line_is_no_anomaly_but_other_text_is(self):
        self.s.event(10, "r1", "log", text='{"level":"info","ev')
        self.s.event(11, "r1", "log", text="   ")
        self.s.event(12, "r1", "log", text="double free or corruption (fasttop)")
        self.assertEqual(self.rules(), ["said"])

    def test_a_failed_check_in_the_log_is_an_anomaly(self):
        self.s.event(9, "r1", "log", level="info", event="start")
        self.s.event(10, "r1", "log", text="grapevine: bug: crdt/index.c:7: CHECK(a == b) failed")
        self.assertEqual(self.rules(), ["said"])
        self.s.rows[0]["value"]["proxy"] = ""  # as the lab writes it
        self.assertEqual(self.rules(), ["said"])

    def test_another_proxy_may_log_any_text(self):
        self.s.event(10, "r1", "log", text="[WARNING]  (32) : Server engines/10.77.2.2-8000 is DOWN, reason: Layer7 timeout")
        self.assertEqual(self.rules(), ["said"])
        self.s.rows[0]["value"]["proxy"] = "haproxy {port} {folder} {engines}"
        self.assertEqual(self.rules(), [])


if __name__ == "__main__":
    unittest.main()
