"""The checker of service: how often a request ran, and until when."""

import unittest

from story import rules
from checkers.service import check
from test_service import DEED, Case, Told, cut, nothing, whole, wrong


class Twice(Case):
    def test_a_deed_that_runs_twice_is_an_anomaly(self):
        self.t.trouble(9, 12, "resets", "e1")
        op = self.t.ask(10, 11, wrong(404), path=DEED, stream=False)
        self.t.run(op, "e1", 10.1, 10.2, "failed")
        self.t.run(op, "e2", 10.3, 10.4, "refused", status=404)
        self.expect("twice")

    def test_a_request_without_a_stream_may_run_again_if_its_engine_died(self):
        """The engine was back at once, and got the request again (seed 73)."""
        for stream, expected in ((False, []), (True, ["twice"])):
            self.setUp()
            op = self.t.ask(10, 12, whole(streamed=stream), stream=stream)
            self.t.run(op, "e1", 10.1)
            self.t.event(10.15, "e1", "exit", status=-9)
            self.t.event(10.151, "e1", "start", life=2)
            self.t.run(op, "e1", 10.16, 11.9)
            self.expect(*expected)

    def test_a_computation_may_run_twice(self):
        self.t.trouble(9, 12, "resets", "e1")
        op = self.t.ask(10, 11, whole())
        self.t.run(op, "e1", 10.1, 10.2, "failed")
        self.t.run(op, "e2", 10.3, 10.9)
        self.expect()

    def test_a_computation_may_not_run_twice_at_one_engine(self):
        op = self.t.ask(10, 13, whole())
        self.t.run(op, "e1", 10.1, 11.2, "failed")
        self.t.run(op, "e1", 11.3, 12.9)
        self.expect("twice")

    def test_a_kept_connection_that_closed_at_once_allows_another_run(self):
        op = self.t.ask(10, 11, whole())
        self.t.run(op, "e1", 10.1, 10.15, "failed", 0, first=False)
        self.t.run(op, "e1", 10.2, 10.9)
        self.expect()

    def test_an_answer_of_which_nothing_was_sent_allows_another_run(self):
        """An answer that is no stream goes out at its end. Seen: resets before the first piece."""
        op = self.t.ask(10, 11, whole(streamed=False), stream=False)
        self.t.run(op, "e1", 10.1, 10.15, "failed", 0)
        self.t.run(op, "e1", 10.2, 10.9)
        self.expect()

    def test_an_answer_partly_sent_allows_no_other_run(self):
        op = self.t.ask(10, 11, whole())
        self.t.run(op, "e1", 10.1, 10.15, "failed", 300)
        self.t.run(op, "e1", 10.2, 10.9)
        self.expect("twice")

    def test_a_reset_that_overtook_the_answer_allows_another_run(self):
        """Seen, where packets are reordered: an engine resets 0.1 ms after its first 1.7 KB, of which nothing comes; and
        where packets are answered by resets to both ends: to the engine it looks as if the router left."""
        for how in ("failed", "left"):
            op = self.t.ask(10, 11, whole())
            self.t.run(op, "e1", 10.1, 10.1101, how, 1737)
            self.t.run(op, "e1", 10.2, 10.9)
        self.expect()

    def test_runs_at_more_engines_than_retries_are_an_anomaly(self):
        op = self.t.ask(10, 11, whole())
        for i in range(3):
            self.t.run(op, "e%d" % (i + 1), 10.1 + i / 10, 10.15 + i / 10, "refused", first=False, status=503)
        self.t.run(op, "e4", 10.5, 10.9)
        self.expect("twice")

    def test_refusals_of_draining_engines_do_not_count_as_runs(self):
        """Seen: a router asks three engines that drain, and then one that does not."""
        self.t.trouble(9, 12, "engine-drain", "e1", "e2", "e3", wish={"mode": "draining"}, serves=True)
        op = self.t.ask(10, 11, whole())
        for i in range(3):
            self.t.run(op, "e%d" % (i + 1), 10.1 + i / 10, 10.15 + i / 10, "refused", first=False, status=500)
        self.t.run(op, "e4", 10.5, 10.9)
        self.expect()

    def test_a_draining_engine_that_computes_counts_as_a_run(self):
        self.t.trouble(9, 12, "engine-drain", "e1", "e2", "e3", wish={"mode": "draining"}, serves=True)
        op = self.t.ask(10, 11, whole())
        for i in range(3):
            self.t.run(op, "e%d" % (i + 1), 10.1 + i / 10, 10.15 + i / 10, "failed", 0)
        self.t.run(op, "e4", 10.5, 10.9)
        self.expect("twice")

    def test_runs_at_as_many_engines_as_retries_are_right(self):
        op = self.t.ask(10, 11, whole())
        for i in range(2):
            self.t.run(op, "e%d" % (i + 1), 10.1 + i / 10, 10.15 + i / 10, "refused", first=False, status=503)
        self.t.run(op, "e4", 10.5, 10.9)
        self.expect()

    def test_a_get_request_is_no_run(self):
        op = self.t.ask(10, 11, whole())
        for i in range(4):
            self.t.run(op, "e%d" % (i + 1), 10.1, 10.2, "refused", method="GET", status=404)
        self.t.run(op, "e1", 10.5, 10.9)
        self.expect()


    def test_a_run_after_the_client_had_tokens_is_an_anomaly(self):
        for token_s, expected in ((0.2, ["twice"]), (0.7, [])):
            self.t = Told()
            self.t.trouble(9, 12, "x", "e1")
            op = self.t.ask(10, 11, cut(token_s=token_s))
            self.t.run(op, "e1", 10.1, 10.5, "failed", 30)
            self.t.run(op, "e2", 10.6, 10.9)
            self.expect(*expected)

    def test_a_delayed_request_is_no_second_run(self):
        self.t.trouble(9, 12, "delay", "r1", "e2", links=[["r1", "e2"]], harmless=True)
        op = self.t.ask(10, 11, whole(token_s=0.2))
        self.t.run(op, "e1", 10.1, 10.9)
        self.t.run(op, "e2", 10.6, 10.7, "left", 0, first=False)
        self.expect()

    def test_a_run_after_a_complete_answer_is_an_anomaly(self):
        for fault, expected in (((), ["twice"]), (("e1",), []), (("r1",), []), (("e3",), ["twice"])):
            self.t = Told()
            self.t.trouble(5, 6, "x", *fault)
            op = self.t.ask(10, 12, whole())
            self.t.run(op, "e1", 10.1, 10.5, bytes=90, hash="cc")
            self.t.run(op, "e2", 10.6, 11.9)
            self.expect(*expected)


class StillRunning(Case):
    def leave(self, t, end, run_end, engine="e1", at="r1"):
        op = self.t.ask(t, end, cut(error="left"), at=at)
        self.t.run(op, engine, t + 0.1, run_end, "left")

    def test_a_run_that_ends_with_its_client_is_right(self):
        self.leave(10, 11, 11.3)
        self.expect()

    def test_a_run_that_outlives_its_client_is_an_anomaly(self):
        self.leave(10, 11, 14)
        self.expect("still running")

    def test_a_run_that_never_ends_is_an_anomaly(self):
        self.leave(10, 11, None)
        self.t.event(20, "lab", "over")
        self.expect("still running")

    def test_a_run_may_last_to_the_end_of_the_history(self):
        self.leave(10, 11, None)
        self.t.event(11.4, "lab", "over")
        self.assertEqual(rules(check(self.t.history())), [])

    def test_a_stopped_engine_may_end_a_run_late(self):
        self.t.trouble(10.5, 25, "pause", "e1")
        self.leave(10, 11, 26)
        self.expect()

    def test_another_stopped_engine_is_no_excuse(self):
        self.t.trouble(10.5, 25, "pause", "e2")
        self.leave(10, 11, 26)
        self.expect("still running")

    def test_packet_loss_is_an_excuse(self):
        self.t.trouble(10.5, 12, "loss", "r1", "e1", links=[["r1", "e1"]], harmless=True)
        self.leave(10, 11, 20)
        self.expect()

    def test_packet_loss_long_over_is_no_excuse(self):
        self.t.trouble(10.5, 12, "loss", "r1", "e1", links=[["r1", "e1"]], harmless=True)
        self.leave(10, 11, 60)
        self.expect("still running")

    def test_a_fault_of_the_clock_is_no_excuse(self):
        self.t.trouble(10.5, 12, "clock-skew", "r1", harmless=True)
        self.leave(10, 11, 20)
        self.expect("still running")

    def test_a_run_must_end_when_its_request_moves_elsewhere(self):
        op = self.t.ask(10, 18, whole())
        self.t.run(op, "e1", 10.1, 17, "left", first=False)
        self.t.run(op, "e2", 12, 17.9)
        self.expect("still running")

    def test_a_killed_engine_ends_its_runs(self):
        self.t.trouble(10.9, 30, "kill", "e1")
        self.leave(10, 11, None)
        self.t.event(11.2, "e1", "exit", status=-9)
        self.t.event(29, "e1", "start")
        self.expect()


    def test_a_run_that_begins_long_after_its_client_left_is_an_anomaly(self):
        op = self.t.ask(10, 10.5, nothing("left"))
        self.t.run(op, "e1", 70, 71)
        self.expect("still running")

    def test_a_run_that_begins_after_its_answer_is_an_anomaly(self):
        op = self.t.ask(10, 11, whole())
        self.t.run(op, "e1", 10.1, 10.9)
        self.t.run(op, "e2", 60, 61.4)
        self.expect("twice", "still running")

    def test_a_run_may_begin_as_its_client_leaves(self):
        op = self.t.ask(10, 10.5, nothing("left"))
        self.t.run(op, "e1", 10.6, 11.6, "left")
        self.expect()

    def test_a_run_may_begin_late_at_a_stopped_engine(self):
        for end, expected in ((60, []), (20, ["still running"])):
            self.t = Told()
            self.t.trouble(9, end, "pause-engine", "e1")
            op = self.t.ask(10, 10.5, nothing("left"))
            self.t.run(op, "e1", 60.1, 60.2, "left")
            self.expect(*expected)


if __name__ == "__main__":
    unittest.main()
