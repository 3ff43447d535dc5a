"""The checker of service, if routers have limits for waiting: for engines, and for clients."""

import unittest

from test_service import Case, Told, cut, nothing, whole


class Patience(Case):
    """A router with a limit for waiting for an engine."""

    def setUp(self):
        self.t = Told(options={"upstream-first-token-timeout": "3s"})

    def test_another_engine_may_answer_after_the_limit(self):
        op = self.t.ask(10, 14, whole())
        self.t.trouble(9, 20, "hang", "e1", serves=True)
        self.t.run(op, "e1", 10.1, 13.2, "left", first=False)
        self.t.run(op, "e2", 13.2, 13.9)
        self.expect()

    def test_a_router_that_ignores_its_limit_is_an_anomaly(self):
        op = self.t.ask(10, 30, nothing("timeout"))
        self.t.trouble(9, 31, "hang", "e1", serves=True)
        self.t.run(op, "e1", 10.1, 30.1, "left", first=False)
        self.expect("waited")

    def test_another_engine_long_after_the_limit_is_an_anomaly(self):
        op = self.t.ask(10, 22, whole())
        self.t.trouble(9, 20, "hang", "e1", serves=True)
        self.t.run(op, "e1", 10.1, 21, "left", first=False)
        self.t.run(op, "e2", 21, 21.9)
        self.expect("waited")

    def test_an_answer_whose_tokens_come_may_take_long(self):
        op = self.t.ask(10, 25, whole())
        self.t.run(op, "e1", 10.1, 24.9)
        self.expect()

    def test_the_limit_is_not_for_answers_that_are_no_streams(self):
        op = self.t.ask(10, 29, nothing("timeout"), stream=False)
        self.t.trouble(9, 30, "hang", "e1", serves=True)
        self.t.run(op, "e1", 10.1, 29.1, "left", first=False)
        self.expect()

    def test_a_client_that_reads_nothing_may_be_cut(self):
        self.t = Told(options={"client-write-timeout": "1s"})
        op = self.t.ask(10, 14.1, cut(error="reset"), sleep_s=4)
        self.t.run(op, "e1", 10.1, 11.9, "left", bytes=300000)
        self.expect()

    def test_a_client_that_reads_nothing_must_be_cut(self):
        for bytes, option, expected in ((500000, "1s", ["waited"]), (100000, "1s", []), (500000, "1m", [])):
            self.t = Told(options={"client-write-timeout": option})
            op = self.t.ask(10, 15, whole(bytes=bytes), sleep_s=4)
            self.t.run(op, "e1", 10.1, 11.2, bytes=bytes)
            self.expect(*expected)

    def test_a_balancer_reads_for_a_client_that_does_not(self):
        self.t = Told(options={"client-write-timeout": "1s"})
        op = self.t.ask(10, 15, whole(bytes=500000), at="lb", sleep_s=4)
        self.t.run(op, "e1", 10.1, 11.2, bytes=500000)
        self.expect()

    def test_a_client_that_reads_nothing_may_wait_for_a_slow_engine(self):
        self.t = Told(options={"client-write-timeout": "1s"})
        op = self.t.ask(10, 15, whole(bytes=500000), sleep_s=4)
        self.t.run(op, "e1", 10.1, 13.2, bytes=500000)
        self.expect()

    def test_a_client_that_pauses_within_the_limit_may_not_be_cut(self):
        self.t = Told(options={"client-write-timeout": "1m"})
        op = self.t.ask(10, 14.1, cut(error="reset"), sleep_s=4)
        self.t.run(op, "e1", 10.1, 11.9, "left", bytes=300000)
        self.expect("needless cut")

    def test_a_paused_router_may_pass_its_limit(self):
        op = self.t.ask(10, 25, nothing("timeout"))
        self.t.trouble(11, 24, "pause", "r1")
        self.t.run(op, "e1", 10.1, 24.1, "left", first=False)
        self.expect()


if __name__ == "__main__":
    unittest.main()
