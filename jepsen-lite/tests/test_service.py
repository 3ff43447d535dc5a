"""The checker of service: for each rule a history that is right, one that is wrong, and one that only looks wrong."""

import unittest

from story import Story, rules
from checkers.service import check, figures

CHAT, DEED = "/v1/chat/completions", "/jepsen/deed"
HASH = "aa" * 32


def whole(bytes=100, hash=HASH, **more):
    return dict({"status": 200, "finished": True, "framed": True, "last": True, "streamed": True, "failed": False,
                 "tokens": 3, "sent": True, "bytes": bytes, "hash": hash}, **more)


def wrong(status=503, **more):
    return dict({"status": status, "finished": True, "framed": True, "last": False, "streamed": False, "failed": True,
                 "tokens": 0, "sent": True, "bytes": 40, "hash": "ff" * 32}, **more)


def nothing(error, **more):
    return dict(wrong(0, bytes=0, finished=False, framed=False, failed=False, error=error), **more)


def cut(tokens=3, **more):
    return dict(whole(tokens=tokens, finished=False, framed=False, last=False, error="closed"), **more)


class Told(Story):
    def __init__(self, engines=4, **more):
        super().__init__("service", engines=engines, **more)
        self.number = 0

    def ask(self, t, end, value, at="r1", path=CHAT, stream=True, how="info", **more):
        return self.operation(t, end, "chat", {"path": path, "at": at, "stream": stream, **more},
                              how and ("ok" if value["status"] == 200 else "info"), value)

    def run(self, op, engine, t, end=None, how="whole", bytes=100, hash=HASH, first=True, method="POST", **more):
        self.number += 1
        row = {"request": self.number, "op": "service-%d" % op}
        self.event(t, engine, "request", **row, method=method, path=CHAT)
        if first:
            self.event(t + 0.01, engine, "first", **row)
        if end is not None:
            self.event(end, engine, "end", **row, how=how, **{"status": 200, "bytes": bytes, "hash": hash, **more})

    def trouble(self, begin, end, fault, *hosts, **more):
        id = "n%d" % len(self.rows)
        self.event(begin, "nemesis", "start", id=id, fault=fault, hosts=list(hosts), text=fault, **more)
        self.event(end, "nemesis", "stop", id=id, fault=fault)


class Case(unittest.TestCase):
    def setUp(self):
        self.t = Told()

    def expect(self, *expected):
        self.t.event(self.t.rows and max(r["t"] for r in self.t.rows) + 2, "lab", "over")
        self.assertEqual(rules(check(self.t.history())), list(expected))


class Bytes(Case):
    def test_an_answer_as_one_engine_sent_it_is_right(self):
        op = self.t.ask(10, 11, whole())
        self.t.run(op, "e1", 10.1, 10.9)
        self.expect()

    def test_an_answer_of_the_second_engine_is_right(self):
        op = self.t.ask(10, 11, whole())
        self.t.run(op, "e1", 10.1, 10.2, "refused", 30, "bb", first=False, status=500)
        self.t.run(op, "e2", 10.3, 10.9)
        self.expect()

    def test_a_missing_piece_is_an_anomaly(self):
        op = self.t.ask(10, 11, whole(bytes=99, hash="bb"))
        self.t.run(op, "e1", 10.1, 10.9)
        self.expect("bytes")

    def test_an_answer_without_an_engine_is_an_anomaly(self):
        self.t.ask(10, 11, whole())
        self.expect("bytes")

    def test_an_answer_of_two_engines_halves_is_an_anomaly(self):
        op = self.t.ask(10, 11, whole(hash="cc"))
        self.t.run(op, "e1", 10.1, 10.4, "failed", 50, "bb")
        self.t.run(op, "e2", 10.5, 10.9)
        self.expect("bytes")

    def test_a_broken_answer_that_seems_complete_is_an_anomaly(self):
        """The engine's journal says that the answer broke off: it is incomplete, though the bytes are the same."""
        op = self.t.ask(10, 11, whole(streamed=False, last=False))
        self.t.run(op, "e1", 10.1, 10.9, "failed")
        self.expect("bytes")

    def test_another_requests_answer_is_stale(self):
        one = self.t.ask(10, 11, whole())
        two = self.t.ask(10, 11, whole(hash="bb"))
        self.t.run(one, "e1", 10.1, 10.9)
        self.t.run(two, "e1", 10.1, 10.9, hash="cc")
        self.t.run(three := self.t.ask(12, 13, whole(hash="cc")), "e2", 12.1, 12.9, hash="dd")
        self.t.history()
        self.expect("bytes", "stale answer")
        self.assertEqual(check(self.t.history())[1].ids, [three])

    def test_another_engine_may_take_over_before_the_first_token(self):
        also = {"bytes": 101, "hash": "cc", "why": "another engine took over"}
        op = self.t.ask(10, 25, whole(hash="bb", also=[also]))
        self.t.trouble(9, 24, "hang", "e1")
        self.t.run(op, "e1", 10.1, 21, "left", first=False)
        self.t.run(op, "e2", 21, 24.9, bytes=101, hash="cc")
        self.expect()

    def test_an_event_of_usage_may_be_removed_if_not_requested(self):
        for usage, expected in ((None, []), (False, ["bytes"]), (True, ["bytes"])):
            self.t = Told()
            op = self.t.ask(10, 11, whole(hash="bb", bytes=80), usage=usage)
            self.t.run(op, "e1", 10.1, 10.9, plain={"bytes": 80, "hash": "bb"})
            self.expect(*expected)

    def test_an_engine_killed_before_its_journals_end_is_an_excuse(self):
        op = self.t.ask(10, 11, whole())
        self.t.run(op, "e1", 10.1)
        self.t.trouble(11, 12, "kill", "e1")
        self.t.event(11.01, "e1", "exit", status=-9)
        self.expect()
        self.assertEqual(figures(self.t.history())["unproved"], 1)

    def test_an_engine_killed_long_before_is_no_excuse(self):
        op = self.t.ask(10, 15, whole())
        self.t.run(op, "e1", 10.1)
        self.t.trouble(11, 12, "kill", "e1")
        self.t.event(11.01, "e1", "exit", status=-9)
        self.expect("bytes")

    def test_a_model_list_that_is_another_answer_is_stale(self):
        self.t.ask(10, 11, whole(streamed=False, last=False), path="/v1/models")
        self.t.run(self.t.ask(10, 11, whole()), "e1", 10.1, 10.9)
        self.expect("stale answer")

    def test_tokens_that_no_engine_sent_are_an_anomaly(self):
        self.t.trouble(9, 12, "x", "e1")
        op = self.t.ask(10, 11, cut())
        self.t.run(op, "e1", 10.1, 10.12, "refused", 0, first=False)
        self.t.ask(10, 11, dict(nothing("left"), tokens=6, status=200))
        self.expect("bytes", "bytes")

    def test_tokens_of_an_engine_that_died_are_right(self):
        for first, expected in ((True, []), (False, ["bytes"])):
            self.t = Told()
            op = self.t.ask(10, 11, cut())
            self.t.run(op, "e1", 10.1, first=first)
            self.t.event(10.5, "e1", "exit", status=-9)
            self.expect(*expected)

    def test_an_answer_must_name_its_engine(self):
        for replica, expected in ((1, []), (2, ["misnamed"]), (9, [])):
            self.t = Told()
            op = self.t.ask(10, 11, whole(replica="10.0.2.%d:8000" % replica))
            self.t.run(op, "e1", 10.1, 10.9)
            self.expect(*expected)

    def test_an_engine_may_have_had_another_address(self):
        self.t.event(5, "e1", "start", address="10.0.2.77:8000", life=2)
        op = self.t.ask(10, 11, whole(replica="10.0.2.77:8000"))
        self.t.run(op, "e1", 10.1, 10.9)
        self.expect()

    def test_an_answer_may_name_the_first_of_two_engines(self):
        """Another engine took over before the first token: the head is the first engine's."""
        self.t.trouble(9, 24, "hang", "e1")
        op = self.t.ask(10, 25, whole(replica="10.0.2.1:8000"))
        self.t.run(op, "e1", 10.1, 21, "left", first=False)
        self.t.run(op, "e2", 21, 24.9)
        self.expect()

    def test_the_routers_own_list_of_models_is_right(self):
        self.t.ask(10, 11, whole(streamed=False, last=False), path="/v1/models")
        self.expect()


class Form(Case):
    def test_bytes_after_an_answer_are_an_anomaly(self):
        op = self.t.ask(10, 11, whole(extra=17, text="HTTP/1.1 200 OK"))
        self.t.run(op, "e1", 10.1, 10.9)
        self.expect("one answer")

    def test_an_answer_that_is_not_http_is_an_anomaly(self):
        self.t.trouble(9, 12, "garbage", "e1")
        self.t.ask(10, 11, nothing("malformed"), at="r1")
        self.expect("malformed", "avoidable")

    def test_a_stream_without_its_last_event_is_an_anomaly(self):
        self.t.trouble(9, 12, "end", "e1")
        op = self.t.ask(10, 11, cut(framed=True, error=None))
        self.t.run(op, "e1", 10.1, 10.9, "failed")
        self.expect("unfinished")

    def test_an_error_event_is_an_honest_end(self):
        self.t.trouble(9, 12, "end", "e1")
        op = self.t.ask(10, 11, cut(framed=True, error=None, failed=True))
        self.t.run(op, "e1", 10.1, 10.9, "failed")
        self.expect()

    def test_the_connection_may_break_after_the_last_event(self):
        op = self.t.ask(10, 11, whole(framed=False, error="reset"))
        self.t.run(op, "e1", 10.1, 10.9)
        self.expect()

    def test_a_valid_request_that_is_refused_is_an_anomaly(self):
        self.t.ask(10, 11, wrong(404))
        self.expect("refused")

    def test_a_deed_that_an_engine_does_not_know_may_be_refused(self):
        op = self.t.ask(10, 11, wrong(404), path=DEED, stream=False)
        self.t.run(op, "e1", 10.1, 10.2, "refused", status=404)
        self.expect()

    def test_a_deed_that_the_router_refuses_is_an_anomaly(self):
        self.t.ask(10, 11, wrong(404), path=DEED, stream=False)
        self.expect("refused")

    def test_a_deed_at_an_engine_without_a_journal_may_be_refused(self):
        self.t.ask(10, 11, wrong(404, replica="10.0.9.9:9102"), path=DEED, stream=False)
        self.expect()

    def test_a_deed_that_its_engine_refuses_is_right(self):
        for status in (400, 404):
            op = self.t.ask(10, 11, wrong(status, replica="10.0.2.1:8000"), path=DEED, stream=False)
            self.t.run(op, "e1", 10.1, 10.2, "refused", status=status, first=False)
        self.expect()

    def test_a_refusal_that_the_named_engine_did_not_make_is_an_anomaly(self):
        self.t.ask(10, 11, wrong(400, replica="10.0.2.1:8000"), path=DEED, stream=False)
        self.expect("refused")

    def test_a_deed_that_no_engine_did_is_an_anomaly(self):
        self.t.ask(10, 11, whole(streamed=False), path=DEED, stream=False)
        self.expect("bytes")

    def test_a_request_without_an_end_is_an_anomaly(self):
        op = self.t.ask(10, 11, {}, how=None)
        self.t.run(op, "e1", 10.1, 11)
        self.t.event(30, "lab", "over")
        self.expect("no answer")

    def test_a_request_that_reached_no_engine_must_end_too(self):
        self.t.ask(10, 11, {}, how=None)
        self.t.event(30, "lab", "over")
        self.expect("no answer")

    def test_a_request_may_go_on_while_its_engine_works(self):
        op = self.t.ask(10, 11, {}, how=None)
        self.t.run(op, "e1", 10.1, 25)
        self.t.event(30, "lab", "over")
        self.expect()

    def test_an_answer_long_after_its_engines_end_is_an_anomaly(self):
        op = self.t.ask(10, 30, whole())
        self.t.run(op, "e1", 10.1, 11)
        self.expect("no answer")

    def test_a_fault_may_not_delay_an_answer_for_ever(self):
        self.t.trouble(9, 12, "descriptors", "r1")
        self.t.ask(10, 24, nothing("timeout"))
        self.t.ask(10, 22, nothing("timeout"))
        self.expect("no answer")

    def test_a_fault_may_delay_an_answer(self):
        self.t.trouble(10.5, 29, "loss", "r1", "e1", links=[["r1", "e1"]], harmless=True)
        op = self.t.ask(10, 30, whole())
        self.t.run(op, "e1", 10.1, 11)
        self.expect()


class Avoidable(Case):
    def test_a_failure_without_a_fault_is_avoidable(self):
        self.t.ask(10, 11, wrong(503, reason="no_replica"))
        self.expect("avoidable")

    def test_a_kept_connection_may_close_if_no_engine_has_the_request(self):
        """It may close if no engine has the request yet, because the client then retries."""
        for run, expected in ((False, []), (True, ["avoidable"])):
            self.setUp()
            op = self.t.ask(10, 11, nothing("closed", reused=True))
            if run:
                self.t.run(op, "e1", 10.1, 10.9)
            self.expect(*expected)

    def test_many_sick_engines_are_no_excuse_if_none_was_tried(self):
        for reason, expected in (("no_replica", ["avoidable"]), ("bad_gateway", [])):
            self.setUp()
            self.t.trouble(9, 60, "refuse", "e1", "e2", "e3")
            self.t.ask(40, 41, wrong(503, reason=reason))
            self.expect(*expected)

    def test_a_fault_that_excuses_nothing_is_no_excuse(self):
        self.t.trouble(9, 60, "rotate-keys", "r1", "r2", excuses=False)
        self.t.ask(40, 41, wrong(503, reason="bad_gateway"))
        self.expect("avoidable")

    def test_a_429_is_a_failure(self):
        self.t.ask(10, 11, wrong(429, failed=False))
        self.expect("avoidable")

    def test_a_cut_without_a_fault_is_needless(self):
        op = self.t.ask(10, 11, cut())
        self.t.run(op, "e1", 10.1, 11, "left")
        self.expect("needless cut")

    def test_one_killed_engine_is_no_excuse_if_others_are_well(self):
        self.t.trouble(10, 20, "kill", "e1")
        op = self.t.ask(10.5, 11, wrong(502))
        self.t.run(op, "e1", 10.6, 10.8, "failed", first=False)
        self.expect("avoidable")

    def test_a_killed_engine_excuses_the_cut_of_its_answer(self):
        self.t.trouble(10, 20, "kill", "e1")
        op = self.t.ask(9.5, 10.5, cut())
        self.t.run(op, "e1", 9.6, 10.4, "failed")
        self.expect()

    def test_a_killed_engine_does_not_excuse_the_cut_of_other_answers(self):
        self.t.trouble(10, 20, "kill", "e1")
        op = self.t.ask(9.5, 10.5, cut())
        self.t.run(op, "e2", 9.6, 10.4, "failed")
        self.expect("needless cut")

    def test_a_killed_router_excuses_failures_at_that_router(self):
        self.t.trouble(10, 20, "kill", "r1")
        self.t.run(self.t.ask(9.5, 10.1, cut()), "e1", 9.6, 10.1, "left")
        self.t.ask(12, 12.1, nothing("refused"))
        self.t.ask(21, 21.1, nothing("refused"))
        self.expect()

    def test_another_killed_router_is_no_excuse(self):
        self.t.trouble(10, 20, "kill", "r2")
        self.t.ask(9.5, 10.1, nothing("reset"))
        self.expect("avoidable")

    def test_a_router_killed_long_ago_is_no_excuse(self):
        self.t.trouble(10, 20, "kill", "r1")
        self.t.ask(24, 24.1, nothing("refused"))
        self.expect("avoidable")

    def test_behind_the_balancer_any_killed_router_is_an_excuse(self):
        self.t.trouble(10, 20, "kill", "r2")
        self.t.ask(10.5, 11, nothing("reset"), at="lb")
        self.expect()

    def test_behind_the_balancer_a_killed_router_excuses_no_error_answer(self):
        for value, expected in ((wrong(503, reason="no_replica"), ["avoidable"]), (nothing("reset"), [])):
            self.t = Told()
            self.ends("r2", 10, 20, "SIGKILL", -9)
            self.t.ask(10.2, 10.5, value, at="lb")
            self.expect(*expected)

    def ends(self, router, t, back, asked, status):
        self.t.event(t, router, "exit", asked=asked, status=status)
        self.t.event(back, router, "start", life=2)

    def test_a_router_that_is_gone_excuses_failures_until_it_is_back(self):
        self.ends("r1", 30, 50, "SIGTERM", 0)
        for t in (10, 25, 40, 60):
            self.t.ask(t, t + 0.1, nothing("refused"))
        self.expect("avoidable", "avoidable")

    def test_a_router_that_is_not_ready_yet_is_an_excuse(self):
        self.ends("r1", 20, 40, "SIGTERM", 0)
        for t in (40.1, 44):
            self.t.ask(t, t + 0.1, wrong(503, reason="no_replica"))
        self.expect("avoidable")

    def test_behind_the_balancer_a_draining_router_is_no_excuse(self):
        self.ends("r1", 20, 40, "SIGTERM", 0)
        self.t.ask(19.9, 20.1, nothing("refused"), at="lb")
        self.expect("avoidable")

    def test_behind_the_balancer_a_router_long_gone_is_no_excuse(self):
        self.ends("r1", 20, 40, "SIGKILL", -9)
        for t in (19.9, 22, 30, 39.9, 40.1):
            self.t.ask(t, t + 0.2, nothing("closed"), at="lb")
        self.expect("avoidable", "avoidable", "avoidable")

    def test_a_draining_router_must_finish_its_answers(self):
        self.ends("r1", 20, 40, "SIGTERM", 0)
        op = self.t.ask(19, 20, cut())
        self.t.run(op, "e1", 19.1, 20, "left")
        self.expect("needless cut")

    def test_behind_the_balancer_a_router_that_ended_badly_is_an_excuse(self):
        for asked, status in (("SIGTERM", 1), ("SIGKILL", -9), ("", 0)):
            self.t = Told()
            self.ends("r1", 20, 40, asked, status)
            self.t.ask(19.9, 20.1, nothing("refused"), at="lb")
            self.expect()

    def test_the_balancer_is_no_excuse_without_a_fault(self):
        self.t.ask(10.5, 11, nothing("reset"), at="lb")
        self.expect("avoidable")

    def test_only_a_cut_of_the_clients_own_link_is_an_excuse(self):
        for link, expected in ((["c1", "r1"], []), (["c1", "r2"], ["avoidable"]), (["r1", "r2"], ["avoidable"])):
            self.t = Told()
            self.t.trouble(9, 20, "partition", "c1", "r1", "r2", links=[link])
            self.t.ask(10, 11, nothing("unreachable"))
            self.expect(*expected)

    def test_a_router_that_reaches_no_engine_is_an_excuse(self):
        self.t.trouble(9, 20, "partition", "r1", links=[["r1", "e%d" % i] for i in range(1, 5)])
        self.t.ask(10, 11, wrong(503))
        self.t.ask(10, 11, wrong(503), at="r2")
        self.expect("avoidable")

    def test_a_harmless_fault_is_no_excuse(self):
        self.t.trouble(9, 20, "delay", "r1", "e1", harmless=True)
        self.t.ask(10, 11, wrong(504))
        self.expect("avoidable")

    def test_many_sick_engines_are_an_excuse_if_a_try_is_shown(self):
        for value, run, expected in ((nothing("closed"), False, ["avoidable"]), (wrong(500), False, ["avoidable"]),
                                     (wrong(500), True, []), (wrong(502), False, [])):
            self.t = Told(engines=8)
            self.t.trouble(5, 20, "x", "e1", "e2", "e3")
            op = self.t.ask(10, 10.1, value)
            if run:
                self.t.run(op, "e1", 10.01, 10.05, "failed", 0, first=False)
            self.expect(*expected)

    def test_a_retry_budget_that_nothing_spent_is_no_excuse(self):
        for end, run, expected in ((6, None, ["avoidable"]), (8, None, []), (6, "e8", []), (6, "e1", ["avoidable"])):
            self.t = Told(engines=8)
            self.t.trouble(5, end, "x", "e8")
            op = self.t.ask(10, 10.1, wrong(503, reason="retry_budget"))
            if run:
                self.t.run(op, run, 10.01, 10.05, "failed", 0, first=False)
            self.expect(*expected)

    def test_more_sick_engines_than_retries_are_an_excuse(self):
        for count, expected in ((2, ["avoidable"]), (3, [])):
            self.t = Told()
            self.t.trouble(9, 20, "500", *["e%d" % (i + 1) for i in range(count)])
            self.t.ask(10, 11, wrong(503))
            self.expect(*expected)

    def test_all_engines_sick_are_an_excuse_for_a_time(self):
        self.t = Told(engines=2)
        self.t.trouble(9, 10, "kill", "e1", "e2")
        self.t.ask(12, 13, wrong(503))
        self.t.ask(20, 21, wrong(503))
        self.expect("avoidable")

    def test_a_request_that_must_not_be_repeated_may_fail(self):
        self.t.trouble(9, 20, "resets", "e1")
        op = self.t.ask(10, 11, wrong(502), path=DEED, stream=False)
        self.t.run(op, "e1", 10.1, 10.2, "failed")
        self.expect()

    def test_the_reason_in_an_answer_must_fit_the_faults(self):
        for status, reason, hosts, expected in (
                (502, "suspect", ["e1", "e2"], []), (502, "suspect", ["e1"], ["avoidable"]),
                (503, "retry_budget", ["e1"], []), (503, "retry_budget", [], ["avoidable"]),
                (503, "no_replica", ["e1"], ["avoidable"])):
            self.t = Told()
            if hosts:
                self.t.trouble(9, 20, "kill", *hosts)
            self.t.ask(10, 11, wrong(status, reason=reason))
            self.expect(*expected)

    def test_a_time_limit_is_no_excuse_without_a_fault(self):
        self.t.ask(10, 11, wrong(504, limit="queue-timeout"))
        self.t.trouble(20, 30, "hang", "e1")
        self.t.ask(21, 29, wrong(504, limit="upstream-first-token-timeout"))
        self.expect("avoidable")

    def test_a_500_that_two_engines_sent_is_excused(self):
        self.t.trouble(9, 20, "500", "e1", "e2")
        op = self.t.ask(10, 11, wrong(500))
        self.t.run(op, "e1", 10.1, 10.2, "refused", first=False, status=500)
        self.t.run(op, "e2", 10.3, 10.4, "refused", first=False, status=500)
        self.expect()

    def test_a_client_may_time_out_at_a_slow_engine(self):
        for serves, expected in ((True, []), (False, ["avoidable"])):
            self.t = Told()
            self.t.trouble(9, 60, "crawl", "e1", serves=serves)
            op = self.t.ask(10, 50, nothing("timeout"))
            self.t.run(op, "e1", 10.1, 50.2, "left", first=False)
            self.expect(*expected)

    def test_a_closed_kept_connection_is_excused(self):
        self.t.ask(10, 10.1, nothing("closed", reused=True))
        self.expect()
        self.t.ask(10, 10.1, nothing("closed", reused=False))
        self.expect("avoidable")

    def test_a_client_that_left_is_no_failure(self):
        self.t.ask(10, 10.1, nothing("left"))
        self.expect()

    def test_excused_failures_are_counted(self):
        self.t.trouble(10, 20, "kill", "r1")
        self.t.ask(12, 12.1, nothing("refused"))
        self.assertEqual(figures(self.t.history())["excused"], {"way": 1})


if __name__ == "__main__":
    unittest.main()
