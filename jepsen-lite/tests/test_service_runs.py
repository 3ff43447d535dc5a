"""The checker of service: how often a request ran, and until when."""

import unittest

from story import rules
from checkers.service import check
from test_service import DEED, Case, Told, cut, nothing, whole, wrong


class Twice(Case):
    def test_a_deed_runs_twice(self):
        self.t.trouble(9, 12, "resets", "e1")
        op = self.t.ask(10, 11, wrong(404), path=DEED, stream=False)
        self.t.run(op, "e1", 10.1, 10.2, "failed")
        self.t.run(op, "e2", 10.3, 10.4, "refused", status=404)
        self.expect("twice")

    def test_one_that_is_not_streamed_had_nothing_of_an_answer_when_its_engine_died(self):
        """It was back at once, and had it again (seed 73)."""
        for stream, expected in ((False, []), (True, ["twice"])):
            self.setUp()
            op = self.t.ask(10, 12, whole(streamed=stream), stream=stream)
            self.t.run(op, "e1", 10.1)
            self.t.event(10.15, "e1", "exit", status=-9)
            self.t.event(10.151, "e1", "start", life=2)
            self.t.run(op, "e1", 10.16, 11.9)
            self.expect(*expected)

    def test_a_computation_may(self):
        self.t.trouble(9, 12, "resets", "e1")
        op = self.t.ask(10, 11, whole())
        self.t.run(op, "e1", 10.1, 10.2, "failed")
        self.t.run(op, "e2", 10.3, 10.9)
        self.expect()

    def test_but_not_at_one_engine(self):
        op = self.t.ask(10, 13, whole())
        self.t.run(op, "e1", 10.1, 11.2, "failed")
        self.t.run(op, "e1", 11.3, 12.9)
        self.expect("twice")

    def test_again_there_where_a_kept_connection_closed_at_once(self):
        op = self.t.ask(10, 11, whole())
        self.t.run(op, "e1", 10.1, 10.15, "failed", 0, first=False)
        self.t.run(op, "e1", 10.2, 10.9)
        self.expect()

    def test_again_there_where_an_answer_was_computed_and_nothing_of_it_sent(self):
        """An answer that is no stream goes out at its end. Seen: resets before the first piece."""
        op = self.t.ask(10, 11, whole(streamed=False), stream=False)
        self.t.run(op, "e1", 10.1, 10.15, "failed", 0)
        self.t.run(op, "e1", 10.2, 10.9)
        self.expect()

    def test_but_not_where_some_of_it_was_sent(self):
        op = self.t.ask(10, 11, whole())
        self.t.run(op, "e1", 10.1, 10.15, "failed", 300)
        self.t.run(op, "e1", 10.2, 10.9)
        self.expect("twice")

    def test_again_where_a_reset_overtook_what_was_sent(self):
        """Seen, where packets are reordered: an engine resets 0.1 ms after its first 1.7 KB, of which nothing comes; and
        where packets are answered by resets to both ends: to the engine it looks as if the router left."""
        for how in ("failed", "left"):
            op = self.t.ask(10, 11, whole())
            self.t.run(op, "e1", 10.1, 10.1101, how, 1737)
            self.t.run(op, "e1", 10.2, 10.9)
        self.expect()

    def test_more_engines_than_retries(self):
        op = self.t.ask(10, 11, whole())
        for i in range(3):
            self.t.run(op, "e%d" % (i + 1), 10.1 + i / 10, 10.15 + i / 10, "refused", first=False, status=503)
        self.t.run(op, "e4", 10.5, 10.9)
        self.expect("twice")

    def test_more_engines_than_retries_of_which_one_drains(self):
        """Seen: a router asks three engines that drain, and then one that does not."""
        self.t.trouble(9, 12, "engine-drain", "e1", "e2", "e3", wish={"mode": "draining"}, serves=True)
        op = self.t.ask(10, 11, whole())
        for i in range(3):
            self.t.run(op, "e%d" % (i + 1), 10.1 + i / 10, 10.15 + i / 10, "refused", first=False, status=500)
        self.t.run(op, "e4", 10.5, 10.9)
        self.expect()

    def test_one_that_drains_and_computes_was_tried(self):
        self.t.trouble(9, 12, "engine-drain", "e1", "e2", "e3", wish={"mode": "draining"}, serves=True)
        op = self.t.ask(10, 11, whole())
        for i in range(3):
            self.t.run(op, "e%d" % (i + 1), 10.1 + i / 10, 10.15 + i / 10, "failed", 0)
        self.t.run(op, "e4", 10.5, 10.9)
        self.expect("twice")

    def test_as_many_as_there_are(self):
        op = self.t.ask(10, 11, whole())
        for i in range(2):
            self.t.run(op, "e%d" % (i + 1), 10.1 + i / 10, 10.15 + i / 10, "refused", first=False, status=503)
        self.t.run(op, "e4", 10.5, 10.9)
        self.expect()

    def test_a_question_who_has_it_is_no_run(self):
        op = self.t.ask(10, 11, whole())
        for i in range(4):
            self.t.run(op, "e%d" % (i + 1), 10.1, 10.2, "refused", method="GET", status=404)
        self.t.run(op, "e1", 10.5, 10.9)
        self.expect()


    def test_its_client_had_tokens(self):
        for token_s, expected in ((0.2, ["twice"]), (0.7, [])):
            self.t = Told()
            self.t.trouble(9, 12, "x", "e1")
            op = self.t.ask(10, 11, cut(token_s=token_s))
            self.t.run(op, "e1", 10.1, 10.5, "failed", 30)
            self.t.run(op, "e2", 10.6, 10.9)
            self.expect(*expected)

    def test_it_was_sent_before_and_came_late(self):
        self.t.trouble(9, 12, "delay", "r1", "e2", links=[["r1", "e2"]], harmless=True)
        op = self.t.ask(10, 11, whole(token_s=0.2))
        self.t.run(op, "e1", 10.1, 10.9)
        self.t.run(op, "e2", 10.6, 10.7, "left", 0, first=False)
        self.expect()

    def test_another_had_answered_whole(self):
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

    def test_it_ends_with_its_client(self):
        self.leave(10, 11, 11.3)
        self.expect()

    def test_it_does_not(self):
        self.leave(10, 11, 14)
        self.expect("still running")

    def test_it_never_ends(self):
        self.leave(10, 11, None)
        self.t.event(20, "lab", "over")
        self.expect("still running")

    def test_the_history_ends(self):
        self.leave(10, 11, None)
        self.t.event(11.4, "lab", "over")
        self.assertEqual(rules(check(self.t.history())), [])

    def test_the_engine_was_stopped_meanwhile(self):
        self.t.trouble(10.5, 25, "pause", "e1")
        self.leave(10, 11, 26)
        self.expect()

    def test_another_engine_was(self):
        self.t.trouble(10.5, 25, "pause", "e2")
        self.leave(10, 11, 26)
        self.expect("still running")

    def test_the_way_lost_packets(self):
        self.t.trouble(10.5, 12, "loss", "r1", "e1", links=[["r1", "e1"]], harmless=True)
        self.leave(10, 11, 20)
        self.expect()

    def test_and_was_well_for_long(self):
        self.t.trouble(10.5, 12, "loss", "r1", "e1", links=[["r1", "e1"]], harmless=True)
        self.leave(10, 11, 60)
        self.expect("still running")

    def test_a_clock_that_is_off_slows_nothing(self):
        self.t.trouble(10.5, 12, "clock-skew", "r1", harmless=True)
        self.leave(10, 11, 20)
        self.expect("still running")

    def test_it_went_elsewhere(self):
        op = self.t.ask(10, 18, whole())
        self.t.run(op, "e1", 10.1, 17, "left", first=False)
        self.t.run(op, "e2", 12, 17.9)
        self.expect("still running")

    def test_its_engine_was_killed_and_nothing_runs_there(self):
        self.t.trouble(10.9, 30, "kill", "e1")
        self.leave(10, 11, None)
        self.t.event(11.2, "e1", "exit", status=-9)
        self.t.event(29, "e1", "start")
        self.expect()


    def test_it_begins_long_after_its_client_left(self):
        op = self.t.ask(10, 10.5, nothing("left"))
        self.t.run(op, "e1", 70, 71)
        self.expect("still running")

    def test_it_is_computed_anew_after_its_answer(self):
        op = self.t.ask(10, 11, whole())
        self.t.run(op, "e1", 10.1, 10.9)
        self.t.run(op, "e2", 60, 61.4)
        self.expect("twice", "still running")

    def test_it_begins_as_its_client_leaves(self):
        op = self.t.ask(10, 10.5, nothing("left"))
        self.t.run(op, "e1", 10.6, 11.6, "left")
        self.expect()

    def test_it_begins_late_at_an_engine_that_was_stopped(self):
        for end, expected in ((60, []), (20, ["still running"])):
            self.t = Told()
            self.t.trouble(9, end, "pause-engine", "e1")
            op = self.t.ask(10, 10.5, nothing("left"))
            self.t.run(op, "e1", 60.1, 60.2, "left")
            self.expect(*expected)


if __name__ == "__main__":
    unittest.main()
