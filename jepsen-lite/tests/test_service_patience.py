"""The checker of service, if routers have limits for waiting: for engines, and for clients."""

import unittest

from test_service import Case, Told, cut, nothing, whole


class Patience(Case):
    """A router with a limit for waiting for an engine."""

    def setUp(self):
        self.t = Told(options={"upstream-first-token-timeout": "3s"})

    def test_another_engine_has_it_then(self):
        op = self.t.ask(10, 14, whole())
        self.t.trouble(9, 20, "hang", "e1", serves=True)
        self.t.run(op, "e1", 10.1, 13.2, "left", first=False)
        self.t.run(op, "e2", 13.2, 13.9)
        self.expect()

    def test_nobody_looks_at_the_clock(self):
        op = self.t.ask(10, 30, nothing("timeout"))
        self.t.trouble(9, 31, "hang", "e1", serves=True)
        self.t.run(op, "e1", 10.1, 30.1, "left", first=False)
        self.expect("waited")

    def test_another_engine_has_it_much_later(self):
        op = self.t.ask(10, 22, whole())
        self.t.trouble(9, 20, "hang", "e1", serves=True)
        self.t.run(op, "e1", 10.1, 21, "left", first=False)
        self.t.run(op, "e2", 21, 21.9)
        self.expect("waited")

    def test_its_tokens_come_for_long(self):
        op = self.t.ask(10, 25, whole())
        self.t.run(op, "e1", 10.1, 24.9)
        self.expect()

    def test_another_option_is_for_answers_that_are_no_streams(self):
        op = self.t.ask(10, 29, nothing("timeout"), stream=False)
        self.t.trouble(9, 30, "hang", "e1", serves=True)
        self.t.run(op, "e1", 10.1, 29.1, "left", first=False)
        self.expect()

    def test_a_client_that_reads_nothing_is_cut_off(self):
        self.t = Told(options={"client-write-timeout": "1s"})
        op = self.t.ask(10, 14.1, cut(error="reset"), sleep_s=4)
        self.t.run(op, "e1", 10.1, 11.9, "left", bytes=300000)
        self.expect()

    def test_a_client_that_reads_nothing_has_it_all_the_same(self):
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

    def test_a_client_that_reads_nothing_while_its_engine_is_slow(self):
        self.t = Told(options={"client-write-timeout": "1s"})
        op = self.t.ask(10, 15, whole(bytes=500000), sleep_s=4)
        self.t.run(op, "e1", 10.1, 13.2, bytes=500000)
        self.expect()

    def test_a_client_that_reads_nothing_for_a_while_that_is_allowed(self):
        self.t = Told(options={"client-write-timeout": "1m"})
        op = self.t.ask(10, 14.1, cut(error="reset"), sleep_s=4)
        self.t.run(op, "e1", 10.1, 11.9, "left", bytes=300000)
        self.expect("needless cut")

    def test_the_router_stood_still(self):
        op = self.t.ask(10, 25, nothing("timeout"))
        self.t.trouble(11, 24, "pause", "r1")
        self.t.run(op, "e1", 10.1, 24.1, "left", first=False)
        self.expect()


if __name__ == "__main__":
    unittest.main()
