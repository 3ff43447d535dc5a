"""The checker of routers that start: when they have to be ready."""

import unittest

from story import Story, rules
from checkers.ready import check, figures


class Ready(unittest.TestCase):
    def setUp(self):
        self.s = Story("service")
        self.s.rows[0]["value"]["watched"] = True
        for router in ("r1", "r2"):
            self.s.event(1, router, "ready", life=1)

    def rules(self, end=100):
        self.s.event(end, "lab", "stop")
        return rules(check(self.s.history()))

    def again(self, t, router="r1", ready=None, life=2):
        self.s.event(t - 1, router, "exit", life=life - 1, status=-9)
        self.s.event(t, router, "start", life=life)
        if ready:
            self.s.event(ready, router, "ready", life=life)

    def test_a_router_that_is_ready_in_time_is_right(self):
        self.again(20, ready=31)
        self.assertEqual(self.rules(), [])
        self.assertEqual(figures(self.s.history()), {"starts": 3, "longest until ready, s": 11})

    def test_a_router_that_is_ready_late_or_never_is_an_anomaly(self):
        self.again(20, ready=36)
        self.again(20, "r2")
        self.assertEqual(self.rules(), ["unready", "unready"])

    def test_a_firewall_that_passes_udp_is_no_excuse(self):
        self.s.fault(19, 39, "gossip-join", "r1")
        self.again(20, ready=39.5)
        self.assertEqual(self.rules(), ["unready"])

    def test_a_fault_at_a_router_or_name_server_is_an_excuse(self):
        for hosts, expected in ((["r2"], []), (["ns"], []), (["e1"], ["unready"])):
            self.setUp()
            self.s.fault(19, 30, "pause", *hosts)
            self.again(20, ready=39.5)
            self.assertEqual(self.rules(), expected)

    def test_an_absent_router_is_an_excuse(self):
        self.again(34, "r2", ready=35)
        self.again(20, ready=39.5)
        self.assertEqual(self.rules(), [])

    def test_a_router_that_ends_or_has_no_time_is_excused(self):
        self.again(20)
        self.again(30, life=3)
        self.assertEqual(self.rules(end=44), [])

    def test_a_run_without_checks_of_readiness_is_blind(self):
        self.assertEqual(rules(check(Story("service").history())), [])  # a history from before this check
        blind = Story("service")
        blind.rows[0]["value"]["watched"] = True
        self.assertEqual(rules(check(blind.history())), ["blind"])


if __name__ == "__main__":
    unittest.main()
