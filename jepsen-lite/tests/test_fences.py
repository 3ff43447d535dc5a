"""The checker of fences: histories that are right, wrong and tricky."""

import unittest

from story import Story, rules
from checkers.fences import check, figures


class Told(Story):
    def __init__(self, **limits):
        super().__init__("fences", **limits)

    def read(self, t, router, op, *engines, before=None, listed=("e1", "e2")):
        """The router believes that these engines hold the prompt."""
        self.operation(t, t + 0.01, "read", {"router": router, "op": op}, "ok",
                       {"beliefs": {self.replica(e): 256 for e in engines}, "before": before,
                        "listed": [self.replica(e) for e in listed]})


class Fences(unittest.TestCase):
    def expect(self, told, *expected):
        self.assertEqual(rules(check(told.history())), list(expected))

    def known(self, at=1):
        """Prompt 1 is at e1, and both routers know."""
        t = Told()
        t.chat(at, "1")
        t.read(at + 0.2, "r1", "1", "e1")
        t.read(at + 0.2, "r2", "1", "e1")
        return t

    # --- late

    def test_a_cache_forgotten_in_time_is_right(self):
        t = self.known()
        t.restart(10, "e1")
        t.read(11.2, "r1", "1", before=11.1)
        t.read(11.3, "r2", "1", before=11.2)
        self.expect(t)

    def test_a_cache_believed_too_long_is_late(self):
        t = self.known()
        t.restart(10, "e1")
        t.read(11.2, "r1", "1", before=11.1)
        t.read(19, "r2", "1", before=18.9)
        self.expect(t, "late")

    def test_a_loss_soon_after_another_is_not_a_separate_loss(self):
        for soon, expected in ((1.5, []), (3, ["late"])):
            t = self.known()
            t.restart(10, "e1")
            t.chat(10.6, "2")
            t.read(10.8, "r2", "2", "e1")
            t.restart(10 + soon, "e1")
            t.read(30, "r2", "2", "e1", before=29)
            self.expect(t, *expected)

    def test_some_faults_do_not_excuse_a_late_router(self):
        for fault, hosts, more in (("partition-ring", (), {}), ("rolling-restart", ("r1", "r2", "e1"), {"excuses": False})):
            t = self.known()
            t.fault(9, 30, fault, *hosts, **more)
            t.restart(10, "e1")
            t.read(19, "r2", "1", before=18.9)
            self.expect(t, "late")

    def test_without_a_restart_there_is_no_fence(self):
        t = self.known()
        t.restart(10, "e2")
        t.read(30, "r2", "1", "e1", before=30)
        self.expect(t)

    def test_a_restart_that_only_the_engines_journal_has_counts(self):
        """POST /sim/restart: the process lives on, and its journal has the restart."""
        t = self.known()
        t.event(10, "e1", "restart")
        t.read(20, "r2", "1", "e1", before=20)
        self.expect(t, "late")

    def test_the_limit_runs_from_the_end_of_a_fault(self):
        """r2 was cut off until 40, so it may believe until 46."""
        t = self.known()
        t.fault(9, 40, "partition", "r2")
        t.restart(10, "e1")
        t.read(45, "r2", "1", "e1", before=45)
        t.read(45.5, "r2", "1", before=45.4)
        self.expect(t)
        t.read(46.5, "r1", "1", "e1", before=46.5)
        self.expect(t, "late")

    def test_a_cut_between_routers_excuses_nothing(self):
        t = self.known()
        t.fault(9, 40, "partition", "r1", "r2", links=[["r1", "r2"]])
        t.restart(10, "e1")
        t.read(20, "r2", "1", "e1", before=20)
        self.expect(t, "late")

    def test_a_cut_link_to_the_engine_excuses_its_router(self):
        t = self.known()
        t.fault(9, 40, "partition", "r2", "e1", links=[["r1", "e2"], ["e1", "r2"]])
        t.restart(10, "e1")
        t.read(20, "r2", "1", "e1", before=20)
        self.expect(t)
        t.read(20, "r1", "1", "e1", before=20)
        self.expect(t, "late")

    def test_consecutive_faults_excuse_together(self):
        t = self.known()
        t.fault(9, 14, "partition", "r2")
        t.fault(18, 30, "pause", "r2")
        t.restart(10, "e1")
        t.read(35, "r2", "1", "e1", before=35)
        self.expect(t)

    def test_repeated_short_faults_excuse_if_they_are_too_close(self):
        """The time between two faults is enough to ask the engine, or it is not."""
        for every, expected in ((5, ["late"]), (3, [])):
            t = self.known()
            t.restart(10, "e1")
            for i in range(100 // every):
                t.fault(11 + every * i, 11.1 + every * i, "delay", "e1", "r1", links=[["e1", "r1"]], harmless=True)
            t.read(105, "r1", "1", "e1", before=104.9)
            self.expect(t, *expected)

    def test_a_fault_that_begins_after_the_limit_excuses_nothing(self):
        t = self.known()
        t.fault(17, 30, "pause", "r2")
        t.restart(10, "e1")
        t.read(31, "r2", "1", "e1", before=31)
        self.expect(t, "late")

    def test_an_engine_that_is_down_proves_no_belief(self):
        """Until 40 no router can know whether the engine has lost anything; an engine that was not scored proves no
        belief."""
        t = self.known()
        t.restart(10, "e1", down=30)
        t.read(10.5, "r2", "1", before=10.4, listed=["e2"])
        t.read(41, "r2", "1", "e1", before=40.9)
        t.read(42, "r2", "1", before=41.9)
        self.expect(t)

    def test_an_answer_counts_only_until_the_next_answer(self):
        """`before` of the third answer is the time of the second, in which e1 was not scored."""
        t = self.known()
        t.event(10, "e1", "restart")
        t.read(11, "r2", "1", before=10.9, listed=["e2"])
        t.read(25, "r2", "1", before=24.9)
        self.expect(t)

    def test_the_limit_is_an_option(self):
        t = Told(fence_s=2)
        t.chat(1, "1")
        t.event(10, "e1", "restart")
        t.read(13, "r2", "1", "e1")
        self.expect(t, "late")

    # --- returned

    def test_a_forgotten_cache_believed_again_has_returned(self):
        t = self.known()
        t.restart(10, "e1")
        t.read(11.2, "r2", "1", before=11.1)
        t.read(12, "r2", "1", "e1", before=11.9)
        self.expect(t, "returned")

    def test_no_fault_excuses_a_return(self):
        t = self.known()
        t.restart(10, "e1")
        t.fault(11.5, 60, "partition", "r1", "r2", "e1", "e2")
        t.read(11.2, "r2", "1", before=11.1)
        t.read(40, "r2", "1", "e1", before=39)
        self.expect(t, "returned")

    def test_a_prompt_that_is_sent_again_is_no_return(self):
        """The request broke off when the engine restarted, and its second attempt reached the new process."""
        t = self.known()
        t.restart(10, "e1")
        t.arrives(12.5, "1", "e1")
        t.read(11.2, "r2", "1", before=11.1)
        t.read(12.4, "r2", "1", "e1", before=12.3)
        t.read(50, "r2", "1", "e1", before=50)
        self.expect(t)

    def test_late_news_is_no_return(self):
        """r2 heard of the prompt only after the loss, and of the loss after that."""
        t = Told()
        t.chat(9.8, "1")
        t.restart(10, "e1")
        t.read(10.1, "r2", "1")
        t.read(10.9, "r2", "1", "e1", before=10.8)
        t.read(11.5, "r2", "1", before=11.4)
        self.expect(t)

    def test_a_restarted_router_may_have_old_news_for_a_moment(self):
        """r2 restarts, and takes its snapshot from r1, which was cut off from e1 all the while."""
        t = self.known()
        t.fault(9, 20, "partition", "r1")
        t.restart(10, "e1")
        t.read(11, "r2", "1", before=10.9)
        t.event(12, "r2", "exit", status=-9)
        t.event(14, "r2", "start", life=2)
        t.read(15, "r2", "1", "e1")
        t.read(16, "r2", "1", before=15.9)
        self.expect(t)
        t.read(21, "r2", "1", "e1", before=20.9)
        self.expect(t, "returned")

    def test_a_second_restart(self):
        t = self.known()
        t.restart(10, "e1")
        t.read(11.2, "r2", "1", before=11.1)
        t.arrives(20, "1", "e1")
        t.read(20.2, "r2", "1", "e1", before=20.1)
        t.restart(30, "e1")
        t.read(31.5, "r2", "1", before=31.4)
        self.expect(t)
        t.read(33, "r2", "1", "e1", before=32.9)
        self.expect(t, "returned")

    def test_one_anomaly_for_one_loss(self):
        t = self.known()
        t.chat(2, "2")
        t.read(2.2, "r2", "2", "e1")
        t.event(10, "e1", "restart")
        t.read(20, "r2", "1", "e1", before=20)
        t.read(20, "r2", "2", "e1", before=20)
        self.expect(t, "late")

    # --- figures

    def test_figures_have_the_time_until_a_cache_is_forgotten(self):
        t = self.known()
        t.restart(10, "e1", down=0.5)
        t.read(11.19, "r1", "1", before=11.1)
        t.fault(10.2, 14, "partition", "r2")
        t.read(14.49, "r2", "1", before=14.4)
        f = figures(t.history())
        self.assertEqual(f["losses of a cache"], 1)
        self.assertEqual(f["losses that routers had to learn"], 1)
        believed, knew = f["still believed, by fault"]["partition"], f["known to be lost, by fault"]["partition"]
        self.assertEqual((believed["p50_ms"], believed["most_ms"]), (400.0, 600.0))
        self.assertEqual((knew["p50_ms"], knew["most_ms"], knew["count"]), (500.0, 700.0, 2))


if __name__ == "__main__":
    unittest.main()
