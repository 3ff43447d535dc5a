"""The checker of service: engines that pause, that refuse what their peers accept, and whose context is shorter."""

import unittest

from checkers.service import SEEN, check
from test_service import Case, Told, cut, whole, wrong


def refused(status, **more):
    return wrong(status, failed=False, **more)


class Rejections(Case):
    def refuse(self, count, status=401, wish="status_401", others=(), at=12):
        """This number of clients sees the answer of e1, which refuses from 10 to 20 s."""
        self.t.trouble(10, 20, "engine-reject", "e1", serves=True, rejects=True, wish={"mode": wish})
        for e in others:
            self.t.trouble(10, 20, "engine-hang", e, serves=True)
        for i in range(count):
            t = at + i / 100
            op = self.t.ask(t, t + 0.2, refused(status))
            self.t.run(op, "e1", t + 0.1, t + 0.15, "refused", status=status, first=False)

    def test_a_few_rejections_during_a_fault_are_excused(self):
        self.refuse(SEEN)
        self.expect()

    def test_more_rejections_during_a_fault_are_an_anomaly(self):
        self.refuse(SEEN + 2)
        self.expect("rejections")

    def test_many_rejections_are_excused_if_no_other_engine_is_well(self):
        self.refuse(30, others=("e2",))
        self.expect()

    def test_one_rejection_in_twenty_requests_is_excused(self):
        for i in range(200):
            op = self.t.ask(10.5 + i / 100, 13.5, whole())
            self.t.run(op, "e1", 10.6 + i / 100, 10.61 + i / 100, "refused", status=401, first=False)
            self.t.run(op, "e2", 10.7 + i / 100, 13.4)
        self.refuse(SEEN + 8)
        self.expect()

    def test_a_fault_does_not_excuse_another_status(self):
        self.refuse(0)
        op = self.t.ask(12, 13, refused(422))
        self.t.run(op, "e1", 12.1, 12.9, "refused", status=401, first=False)
        self.expect("refused")

    def test_rejections_after_the_fault_are_an_anomaly(self):
        self.refuse(1, at=21)
        self.expect("refused")

    def test_a_rejection_by_an_engine_without_a_fault_is_an_anomaly(self):
        self.refuse(0)
        op = self.t.ask(12, 13, refused(401))
        self.t.run(op, "e2", 12.1, 12.9, "refused", status=401, first=False)
        self.expect("refused")


class Paused(Case):
    def ask(self, value, fault="engine-pause", pauses=True, **more):
        self.t.trouble(11, 14, fault, "e1", serves=True, **({"pauses": True} if pauses else {}))
        op = self.t.ask(10, 18, value, **more)
        self.t.run(op, "e1", 10.1, 17, "left")

    def test_a_pause_does_not_excuse_a_cut(self):
        self.ask(cut())
        self.expect("needless cut")

    def test_another_fault_excuses_the_cut(self):
        for fault, more in (("engine-hang", {"serves": True}), ("partition-one", {"links": [["r1", "e1"]]})):
            self.setUp()
            self.t.trouble(12, 13, fault, "e1", **more)
            self.ask(cut())
            self.expect()

    def test_a_fault_in_place_of_a_pause_excuses_the_cut(self):
        self.ask(cut(), "engine-hang", pauses=False)
        self.expect()

    def test_the_end_of_the_engines_process_excuses_the_cut(self):
        self.t.event(15, "e1", "exit", status=-9)
        self.t.event(15.5, "e1", "start", life=2)
        self.ask(cut())
        self.expect()

    def test_a_timeout_of_the_client_is_no_anomaly(self):
        self.ask(cut(error="timeout"))
        self.expect()

    def test_a_time_limit_of_the_router_is_an_excuse(self):
        self.t = Told(options={"upstream-idle-timeout": "2s"})
        self.ask(cut())
        self.expect()

    def test_an_answer_that_has_not_begun_may_fail(self):
        for e in ("e2", "e3", "e4"):
            self.t.trouble(9, 15, "engine-fail", e)
        self.ask(wrong(503, reason="no_replica"))
        self.expect()


class ShortContext(Case):
    def setUp(self):
        self.t = Told(engines=3)
        self.t.rows[0]["value"]["engines"][0]["habits"] = {"max-model-len": "3000"}

    def test_a_request_that_does_not_fit_has_one_engine_less(self):
        for tokens, expected in ((2500, []), (200, ["avoidable"])):
            self.setUp()
            self.t.trouble(9, 20, "engine-fail", "e2", "e3")
            self.t.ask(10, 11, wrong(503), tokens=tokens)
            self.expect(*expected)

    def test_a_long_request_may_be_refused_only_if_no_other_engine_is_well(self):
        for tokens, ill, expected in ((2500, ("e2", "e3"), []), (2500, ("e2",), ["refused"]),
                                      (200, ("e2", "e3"), ["refused"])):
            self.setUp()
            self.t.trouble(9, 20, "engine-hang", *ill)
            op = self.t.ask(10, 11, refused(400), tokens=tokens)
            self.t.run(op, "e1", 10.1, 10.2, "refused", status=400, first=False)
            self.expect(*expected)

    def test_a_long_request_refused_without_a_fault_is_an_anomaly(self):
        op = self.t.ask(10, 11, refused(400), tokens=2500)
        self.t.run(op, "e1", 10.1, 10.2, "refused", status=400, first=False)
        self.assertEqual([a.rule for a in check(self.t.history())], ["refused"])


if __name__ == "__main__":
    unittest.main()
