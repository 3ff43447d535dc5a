"""The checker of stored: for each rule a history that is right, one that is wrong, and one that only looks wrong."""

import unittest

from story import Story, rules
from checkers.stored import check, figures

MAKE = "/v1/responses"


def given(id="resp_1", hash="aa", output="o1", state="completed", **more):
    return dict({"status": 200, "finished": True, "framed": True, "failed": False, "sent": True, "tokens": 0,
                 "bytes": 10, "hash": hash, "id": id, "output": output, "state": state}, **more)


def missing():
    return {"status": 404, "finished": True, "framed": True, "failed": True, "sent": True, "bytes": 9, "hash": "ff"}


def broken(status=502):
    return dict(missing(), status=status)


class Told(Story):
    def __init__(self, **options):
        super().__init__("stored", engines=3)
        self.rows[0]["value"]["options"] = options
        self.number = 0

    def run(self, op, engine, t, end, path=MAKE, method="POST", how="whole", hash="aa", status=200):
        self.number += 1
        row = {"request": self.number, "op": "stored-%d" % op}
        self.event(t, engine, "request", **row, method=method, path=path)
        self.event(end, engine, "end", **row, how=how, status=status, bytes=10, hash=hash)

    def make(self, t=10, engine="e1", **more):
        op = self.operation(t, t + 0.5, "make", {"path": MAKE, "at": "r1"}, "ok", given(**more))
        self.run(op, engine, t + 0.1, t + 0.4)
        return op

    def read(self, t, result, at="r2", engine=None, hash="aa", f="read", end=0.2, **more):
        path = MAKE + "/resp_1" if f != "continue" else MAKE
        op = self.operation(t, t + end, f, {"path": path, "of": "resp_1", "at": at}, "ok", result)
        if engine:
            self.run(op, engine, t + 0.05, t + 0.1, path, "GET" if f == "read" else "POST", hash=hash, **more)
        return op

    def trouble(self, begin, end, fault, *hosts, **more):
        id = "n%d" % len(self.rows)
        self.event(begin, "nemesis", "start", id=id, fault=fault, hosts=list(hosts), text=fault, **more)
        self.event(end, "nemesis", "stop", id=id, fault=fault)


class Case(unittest.TestCase):
    def setUp(self):
        self.t = Told()

    def expect(self, *expected):
        self.assertEqual(rules(check(self.t.history())), list(expected))


class Lost(Case):
    def test_a_response_found_from_another_router_is_right(self):
        self.t.make()
        self.t.read(20, given(hash="bb"), "r2", "e1", "bb")
        self.expect()
        self.assertEqual(figures(self.t.history())["asked"], 1)

    def test_a_response_with_a_changed_answer_may_be_lost_as_well(self):
        self.t.make(hash="mangled")
        self.t.read(20, missing())
        self.expect("changed", "lost")

    def test_a_response_that_no_engine_sent_so_is_changed(self):
        self.t.make()
        self.t.read(20, given(hash="mangled"), "r2", "e1", "bb")
        self.expect("changed")

    def test_a_404_by_the_maker_itself_is_no_loss(self):
        """An answer that is made in the background was continued before it had begun (seed 72)."""
        for engine, expected in (("e1", []), ("e2", ["lost"])):
            self.setUp()
            self.t.make()
            self.t.read(20, missing(), engine=engine, hash="ff", f="continue", how="refused", status=404)
            self.expect(*expected)

    def test_a_response_that_is_not_found_is_lost(self):
        self.t.make()
        self.t.read(20, missing())
        self.expect("lost")

    def test_a_response_that_cannot_be_continued_is_lost(self):
        self.t.make()
        self.t.read(20, missing(), f="continue", engine="e2", how="refused", status=404)
        self.expect("lost")

    def test_a_restart_of_the_maker_excuses_a_loss(self):
        self.t.make()
        self.t.restart(15, "e1")
        self.t.read(60, missing())
        self.expect()

    def test_a_restart_of_another_engine_is_no_excuse(self):
        self.t.make()
        self.t.restart(15, "e2")
        self.t.read(60, missing())
        self.expect("lost")

    def test_a_maker_that_was_reset_is_an_excuse(self):
        self.t.make()
        self.t.event(15, "e1", "restart")
        self.t.read(60, missing())
        self.expect()

    def test_the_death_of_the_making_router_is_an_excuse_for_a_time(self):
        self.t.make()
        self.t.trouble(15, 16, "kill", "r1")
        self.t.event(15, "r1", "exit", status=-9)
        self.t.event(16, "r1", "start", life=2)
        self.t.read(17, missing(), "r1")
        self.t.read(30, missing(), "r1")
        self.expect("lost")

    def test_a_router_that_cannot_reach_the_maker_is_an_excuse(self):
        self.t.make()
        self.t.trouble(15, 25, "partition", "r2", "e1", links=[["r2", "e1"]])
        self.t.read(20, missing(), "r2")
        self.t.read(20, given(hash="bb"), "r1", "e1", "bb")
        self.t.read(40, missing(), "r2")
        self.expect("lost")

    def test_another_engines_fault_is_no_excuse_for_a_loss(self):
        self.t.make()
        self.t.trouble(15, 25, "pause", "e2")
        self.t.read(20, missing(), "r2")
        self.expect("lost")

    def test_a_response_may_be_lost_after_many_newer_ones(self):
        self.t.make()
        for i in range(901):
            self.t.make(11 + i / 100, id="resp_x%d" % i)
        self.t.read(30, missing())
        self.expect()

    def test_a_response_of_an_unknown_maker_may_be_missing(self):
        self.t.read(20, missing())
        self.expect()


class Avoidable(Case):
    def test_a_failure_without_a_fault_is_avoidable(self):
        self.t.make()
        self.t.read(20, broken())
        self.expect("avoidable")

    def test_a_rejection_during_a_fault_is_excused(self):
        """A few such answers may reach clients."""
        for fault, expected in (("engine-reject", []), (None, ["avoidable"])):
            self.setUp()
            if fault:
                self.t.trouble(9, 20, fault, "e1", rejects=True)
            op = self.t.operation(10, 11, "make", {"path": "/v1/responses", "at": "r1"}, "info", dict(
                missing(), status=401))
            self.t.run(op, "e1", 10.1, 10.2, how="refused", status=401)
            self.expect(*expected)

    def test_a_maker_that_hangs_is_an_excuse(self):
        self.t.make()
        self.t.trouble(15, 25, "pause", "e1")
        self.t.read(20, broken())
        self.expect()

    def test_another_engine_that_hangs_is_no_excuse(self):
        self.t.make()
        self.t.trouble(15, 25, "pause", "e2")
        self.t.read(20, broken())
        self.t.read(40, broken())
        self.expect("avoidable")

    def test_a_router_that_hangs_is_an_excuse_for_its_own_requests(self):
        self.t.make()
        self.t.trouble(15, 25, "pause", "r2")
        self.t.read(20, broken(), "r2")
        self.t.read(20, broken(), "r1")
        self.expect("avoidable")


    def test_only_the_maker_may_refuse_a_request(self):
        """The maker may refuse a queued response; a router cannot know whether a response is queued."""
        for status in (400, 401, 403, 409, 413, 422):
            for engine, expected in ((None, ["avoidable"]), ("e1", []), ("e2", ["avoidable"])):
                for f in ("read", "continue"):
                    self.setUp()
                    self.t.make()
                    self.t.read(20, broken(status), f=f, engine=engine, hash="ff", how="refused", status=status)
                    self.expect(*expected)

    def test_a_failure_to_make_a_response_needs_an_excuse(self):
        for fault, status, expected in (((), 503, ["avoidable"]), (("r1",), 503, []), (("r2",), 503, ["avoidable"]),
                                        (("e1", "e2", "e3"), 503, []), (("r1",), 403, ["avoidable"])):
            self.setUp()
            self.t.trouble(5, 20, "pause", *fault)
            self.t.operation(10, 10.5, "make", {"path": MAKE, "at": "r1"}, "info", broken(status))
            self.expect(*expected)

    def test_a_client_that_leaves_is_no_failure(self):
        left = dict(broken(0), finished=False, error="left")
        self.t.operation(10, 10.5, "make", {"path": MAKE, "at": "r1"}, "info", left)
        self.expect()


class Same(Case):
    def test_an_answer_that_no_engine_had_is_changed(self):
        self.t.make()
        self.t.read(20, given(hash="zz", output=None, state=None))
        self.expect("changed")

    def test_a_response_that_no_engine_made_is_changed(self):
        self.t.operation(10, 10.5, "make", {"path": MAKE, "at": "r1"}, "ok", given())
        self.t.read(20, missing())
        self.expect("changed")

    def test_a_maker_killed_before_its_journals_end_is_an_excuse(self):
        for t, expected in ((20.3, []), (25, ["changed"])):
            self.setUp()
            self.t.make()
            op = self.t.read(20, given(hash="bb", output=None, state=None), end=0.2 if t < 21 else 6)
            self.t.event(20.05, "e1", "request", request=77, op="stored-%d" % op, method="GET", path=MAKE + "/resp_1")
            self.t.restart(t - 1 if t > 21 else t, "e1")
            self.expect(*expected)

    def test_an_answer_of_another_engine_is_an_anomaly(self):
        self.t.make()
        self.t.read(20, given(hash="bb", id="resp_2"), f="continue", engine="e2", hash="bb")
        self.expect("another")

    def test_all_engines_may_be_asked_if_the_maker_answers(self):
        self.t.make()
        op = self.t.read(20, given(hash="bb", id="resp_2"), f="continue", engine="e1", hash="bb")
        self.t.run(op, "e2", 20.01, 20.02, MAKE + "/resp_1", "GET", "refused", "cc", 404)
        self.expect()

    def test_a_response_with_another_output_is_changed(self):
        self.t.make()
        self.t.read(20, given(hash="bb", output="o2"), "r2", "e1", "bb")
        self.expect("changed")

    def test_an_unfinished_response_may_change(self):
        self.t.make(state="queued", output="o0")
        self.t.read(20, given(hash="bb", output="o0", state="in_progress"), "r2", "e1", "bb")
        self.t.read(21, given(hash="cc", output="o2"), "r2", "e1", "cc")
        self.t.read(22, given(hash="cc", output="o2"), "r1", "e1", "cc")
        self.expect()

    def test_a_finished_response_may_not_change(self):
        self.t.make(state="queued", output="o0")
        self.t.read(21, given(hash="cc", output="o2"), "r2", "e1", "cc")
        self.t.read(22, given(hash="dd", output="o3"), "r1", "e1", "dd")
        self.expect("changed")


class Cancel(Case):
    def test_the_maker_may_refuse_to_cancel(self):
        self.t.make()
        self.t.read(20, dict(missing(), status=400), f="cancel", engine="e1", how="refused", status=400)
        self.expect()

    def test_a_cancel_that_runs_twice_is_an_anomaly(self):
        self.t.make()
        op = self.t.read(20, given(hash="bb"), f="cancel", engine="e1", hash="bb")
        self.t.run(op, "e1", 20.1, 20.15, MAKE + "/resp_1")
        self.expect("twice")

    def test_a_get_before_a_cancel_is_no_run(self):
        self.t.make()
        op = self.t.read(20, given(hash="bb"), f="cancel", engine="e1", hash="bb")
        self.t.run(op, "e1", 20.01, 20.02, MAKE + "/resp_1", "GET")
        self.expect()


class Session(Case):
    def setUp(self):
        self.t = Told(policy="session")

    def choose(self, t, at, replica, policy="session"):
        self.t.operation(t, t + 0.01, "choose", {"key": "s1", "at": at}, "ok", {"policy": policy, "replica": replica})

    def ask(self, t, engine):
        ask = {"key": "s1", "at": "r1", "path": "/v1/completions"}
        op = self.t.operation(t, t + 0.3, "session", ask, "ok", given())
        self.t.run(op, engine, t + 0.1, t + 0.2, "/v1/completions")

    def test_routers_that_choose_the_same_replica_are_right(self):
        self.t.rest(20)
        self.choose(20.1, "r1", "a:1")
        self.choose(20.2, "r2", "a:1")
        self.expect()

    def test_routers_that_choose_different_replicas_are_an_anomaly(self):
        self.t.rest(20)
        self.choose(20.1, "r1", "a:1")
        self.choose(20.2, "r2", "b:1")
        self.expect("session")

    def test_a_policy_that_is_not_configured_is_an_anomaly(self):
        self.t.rest(20)
        self.choose(20.1, "r1", "a:1", "prefix")
        self.choose(20.2, "r2", "b:1", "prefix")
        self.expect("session", "session")

    def test_a_choice_without_an_answer_is_no_anomaly(self):
        self.t.rest(20)
        self.t.operation(20.1, 23.1, "choose", {"key": "s1", "at": "r1"}, "info", {"error": "timed out"})
        self.expect()

    def test_different_choices_under_another_policy_are_right(self):
        self.t = Told(policy="cache_aware")
        self.t.rest(20)
        self.choose(20.1, "r1", "a:1", "cache_aware")
        self.choose(20.2, "r2", "b:1", "cache_aware")
        self.expect()

    def test_different_choices_without_calm_are_right(self):
        self.t.rest(20, calm=False)
        self.choose(20.1, "r1", "a:1")
        self.choose(20.2, "r2", "b:1")
        self.expect()

    def test_different_choices_at_different_rests_are_right(self):
        for t, replica in ((20, "a:1"), (40, "b:1")):
            self.t.rest(t)
            self.choose(t + 0.1, "r1", replica)
            self.choose(t + 0.2, "r2", replica)
        self.expect()

    def test_a_session_that_moves_is_an_anomaly(self):
        self.ask(40, "e1")
        self.ask(50, "e2")
        self.expect("session")

    def test_a_session_may_move_because_of_a_fault(self):
        self.t.trouble(41, 42, "kill", "e1")
        self.ask(40, "e1")
        self.ask(50, "e2")
        self.expect()

    def test_a_session_may_move_because_its_engine_ended(self):
        """The kill itself excuses nothing as a fault, but the end of the engine's process does."""
        self.t.trouble(41, 42, "kill-engine", "e1", excuses=False)
        self.t.restart(41, "e1")
        self.ask(40, "e1")
        self.ask(60, "e2")
        self.expect()
        self.ask(100, "e1")
        self.ask(110, "e2")
        self.expect("session")

    def test_a_session_may_not_move_long_after_a_fault(self):
        self.t.trouble(41, 42, "kill", "e1")
        self.ask(100, "e2")
        self.ask(110, "e1")
        self.expect("session")


if __name__ == "__main__":
    unittest.main()
