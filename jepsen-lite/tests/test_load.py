"""The checker of loads: histories that are right, wrong and tricky."""

import unittest

from story import Story, rules
from checkers.load import check, figures


class Told(Story):
    def __init__(self, **how):
        super().__init__("load", **how)
        self.round, self.requests = 0, 0

    def stream(self, t, end, router="r1", engine="e1", how="left", told=None):
        """A request under way from t to end, or for ever; `told`: the end of the client's operation."""
        self.requests += 1
        id = self.operation(t - 0.01, told or end or t + 1, "stream", {"router": router}, "ok" if end or told else None)
        self.event(t, engine, "request", op=str(id), request=self.requests, method="POST", path="/v1/chat/completions")
        if end:
            self.event(end, engine, "end", op=str(id), request=self.requests, how=how, status=200, bytes=10, hash="")
        return id

    def gauges(self, t, router, round=None, end=None, **engines):
        """engine=(own, {router: n})"""
        replicas = {}
        for engine, (own, by, *tokens) in engines.items():
            replicas[self.replica(engine)] = {"own": own, "others": sum(by.values()), "by": by, "tokens": list(tokens)}
        return self.operation(t, end or t + 0.01, "gauges", {"router": router, "round": round}, "ok",
                              {"replicas": replicas})

    def all(self, t, r1, r2):
        """A round at rest: what each says of e1."""
        self.round += 1
        self.gauges(t, "r1", self.round, e1=r1)
        self.gauges(t + 0.02, "r2", self.round, e1=r2)

    def kill(self, t, router, again=None):
        self.event(t, router, "exit", status=-9)
        if again:
            self.event(again, router, "start", life=2)


class Loads(unittest.TestCase):
    def expect(self, told, *expected):
        self.assertEqual(rules(check(told.history())), list(expected))

    # --- sum

    def held(self):
        """Two requests of r1 and one of r2 at e1, all along."""
        t = Told()
        t.stream(10, 30)
        t.stream(10, 30)
        t.stream(10, 30, "r2")
        return t

    def test_gauges_equal_the_requests_under_way(self):
        t = self.held()
        t.all(15, (2, {"r2": 1}), (1, {"r1": 2}))
        self.expect(t)
        self.assertEqual(figures(t.history()), {"reads": 2, "quiet moments": 2, "under way then": 3})

    def test_a_request_that_is_not_counted_is_an_anomaly(self):
        t = self.held()
        t.all(15, (1, {"r2": 1}), (1, {"r1": 1}))
        self.expect(t, "missing", "sum")

    def test_a_request_that_is_not_reported_is_an_anomaly(self):
        t = self.held()
        t.all(15, (2, {"r2": 1}), (1, {"r1": 1}))
        self.expect(t, "sum")

    def test_a_sum_of_others_that_differs_from_its_parts_is_an_anomaly(self):
        t = self.held()
        t.all(15, (2, {"r2": 1}), (1, {"r1": 2}))
        t.rows[-1]["value"]["replicas"][t.replica("e1")]["others"] = 3
        self.expect(t, "sum")

    def test_no_moment_is_quiet_if_a_request_just_ended(self):
        t = self.held()
        t.stream(10, 14.9)
        t.all(15, (3, {"r2": 1}), (1, {"r1": 2}))
        self.expect(t)

    def test_no_moment_is_quiet_if_a_request_just_began(self):
        t = self.held()
        t.stream(15.01, 30)
        t.all(15, (2, {"r2": 1}), (1, {"r1": 3}))
        self.expect(t)

    def test_requests_at_another_engine_do_not_disturb(self):
        t = self.held()
        t.stream(14.9, 30, engine="e2")
        t.all(15, (1, {"r2": 1}), (1, {"r1": 1}))
        self.expect(t, "missing", "sum")

    def test_a_dead_router_is_not_waited_for(self):
        t = self.held()
        t.kill(5, "r2")
        t.gauges(15, "r1", 1, e1=(2, {}))
        self.expect(t, "sum")

    def test_a_live_router_that_was_not_read_may_have_the_others(self):
        t = self.held()
        t.gauges(15, "r1", 1, e1=(2, {"r2": 1}))
        self.expect(t)

    def test_a_recent_fault_is_an_excuse(self):
        t = self.held()
        t.fault(11, 14, "black-hole", "e1")
        t.all(15, (1, {"r2": 1}), (1, {"r1": 1}))
        self.expect(t)

    def test_a_fault_long_over_is_no_excuse(self):
        t = self.held()
        t.fault(3, 6, "black-hole", "e1")
        t.all(15, (1, {"r2": 1}), (1, {"r1": 1}))
        self.expect(t, "sum")

    def test_a_calm_rest_ends_the_excuse_of_a_fault(self):
        for calm, found in ((True, ["sum"]), (False, [])):
            t = Told()
            t.fault(3, 11, "black-hole", "e1")
            t.rest(12, seconds=5, calm=calm)
            t.stream(12.5, 30)
            t.all(14, (0, {}), (0, {}))
            self.expect(t, *found)

    def test_an_engine_may_still_run_a_request_abandoned_in_a_fault(self):
        t = Told()
        t.stream(10, 40)
        t.fault(9, 11, "black-hole", "e1")
        t.rest(12, seconds=5)
        t.stream(12.5, 30)
        t.all(14, (1, {}), (0, {"r1": 1}))
        self.expect(t)

    def test_requests_of_a_killed_engine_are_over(self):
        t = self.held()
        t.restart(12, "e1", down=0.2)
        t.all(20, (0, {}), (0, {}))
        self.expect(t)

    def test_a_calm_rest_without_readings_is_blind(self):
        for calm, expected in ((True, ["blind"]), (False, [])):
            t = Told()
            t.rest(12, seconds=5, calm=calm)
            t.gauges(13, "r1")
            self.expect(t, *expected)

    def test_a_router_that_is_silent_at_rest_is_an_anomaly(self):
        for calm, life, expected in ((True, True, ["silent"]), (False, True, []), (True, False, [])):
            t = Told()
            t.stream(12.5, 30)
            t.rest(12, seconds=5, calm=calm)
            t.operation(15, 15.1, "gauges", {"router": "r2", "round": 1}, "fail", {"error": "timed out"})
            t.gauges(15, "r1", 1, e1=(1, {}))
            if not life:
                t.kill(15.05, "r2")
            self.expect(t, *expected)

    # --- missing

    def test_a_request_under_way_that_is_not_counted_is_an_anomaly(self):
        t = Told()
        t.stream(10, 30)
        t.stream(10, 30)
        t.gauges(20, "r2", e1=(0, {"r1": 2}))
        t.gauges(20, "r1", e1=(2, {}))
        self.expect(t)
        t.gauges(20, "r1", e1=(1, {}))
        self.expect(t, "missing")

    def test_some_requests_need_not_be_counted(self):
        for story in (lambda t: t.stream(19.8, 30), lambda t: t.stream(10, 20.4), lambda t: t.stream(10, 30, told=20.4),
                      lambda t: t.stream(10, 30, router="lb"), lambda t: t.stream(10, None),
                      lambda t: [t.stream(10, 30), t.fault(11, 12, "black-hole", "e1")],
                      lambda t: [t.stream(10, 30), t.fault(11, 12, "loss", "c1", "r1", links=[["c1", "r1"]], harmless=True)],
                      lambda t: [t.stream(10, 30), t.kill(11, "r1", again=12)]):
            t = Told()
            story(t)
            t.gauges(20, "r1")
            self.expect(t)

    def test_a_request_may_have_moved_to_another_engine(self):
        t = Told()
        op = t.stream(10, 30)
        t.event(12, "e2", "request", op=str(op), request=99, method="POST", path="/v1/chat/completions")
        t.event(30, "e2", "end", op=str(op), request=99, how="whole", status=200, bytes=10, hash="")
        t.gauges(20, "r1", e2=(1, {}))
        self.expect(t)

    # --- stuck

    def test_no_booking_left_is_right(self):
        t = Told()
        t.stream(10, 12)
        t.all(20, (0, {}), (0, {}))
        self.expect(t)

    def test_a_leftover_booking_is_an_anomaly(self):
        t = Told()
        t.stream(10, 12)
        t.all(20, (1, {}), (0, {"r1": 1}))
        self.expect(t, "stuck", "sum", "stale")

    def test_a_replica_without_a_journal_may_have_bookings(self):
        t = Told()
        t.replicas["another"] = "10.0.9.9"
        t.gauges(20, "r1", another=(1, {"r2": 1}))
        self.expect(t)
        t.gauges(21, "r1", another=(-1, {}))
        self.expect(t, "negative")

    def test_a_leftover_booking_among_others_is_an_anomaly(self):
        t = Told()
        t.stream(10, 12)
        t.stream(17, 30)
        t.stream(17, 30, "r2")
        t.gauges(18, "r1", e1=(2, {"r2": 1}))
        self.expect(t, "stuck")

    def test_another_workload_does_not_excuse_a_leftover_booking(self):
        t = Told()
        t.stream(10, 12)
        op = t.operation(17, 30, "chat", {"path": "/v1/chat/completions", "at": "r2"}, "ok")
        t.event(17, "e1", "request", op="service-%d" % op, request=99, method="POST", path="/v1/chat/completions")
        t.event(30, "e1", "end", op="service-%d" % op, request=99, how="whole", status=200, bytes=10, hash="")
        t.gauges(18, "r1", e1=(1, {}))
        self.expect(t, "stuck")

    def test_a_fault_without_victims_excuses_nothing(self):
        t = Told()
        t.fault(15, 19, "partition-ring")
        t.stream(10, 12)
        t.gauges(18, "r1", e1=(1, {}))
        self.expect(t, "stuck")

    def test_a_booking_may_be_of_a_request_behind_the_balancer(self):
        t = Told()
        t.stream(10, 12)
        t.stream(17, 30)
        t.stream(17, 30, router="lb")
        t.gauges(18, "r1", e1=(2, {}))
        self.expect(t)

    def test_a_request_may_be_booked_before_the_engine_has_it(self):
        t = Told()
        t.stream(10.3, 12)
        t.gauges(10.0, "r1", e1=(1, {}))
        self.expect(t)

    def test_a_request_may_end_while_the_router_is_read(self):
        t = Told()
        t.stream(10, 15)
        t.gauges(14.99, "r1", end=15.4, e1=(1, {}))
        self.expect(t)

    def test_tokens_without_a_request_are_an_anomaly(self):
        t = Told()
        t.stream(10, 12)
        t.gauges(20, "r1", e1=(0, {}, 300, 0))
        self.expect(t, "stuck")

    def test_a_link_cut_at_a_requests_end_is_an_excuse(self):
        """The request's last bytes are sent again only some time after the link is whole."""
        t = Told()
        t.stream(10, 12)
        t.fault(11, 19, "partition", "r1", "e1")
        t.rows[-2]["value"]["links"] = [["r1", "e1"]]
        t.gauges(22, "r1", e1=(1, {}))
        self.expect(t)

    def test_a_link_cut_long_ago_is_no_excuse(self):
        t = Told()
        t.stream(10, 12)
        t.fault(11, 19, "partition", "r1", "e1")
        t.rows[-2]["value"]["links"] = [["r1", "e1"]]
        t.gauges(31, "r1", e1=(1, {}))
        self.expect(t, "stuck")

    def test_another_cut_link_is_no_excuse(self):
        t = Told()
        t.stream(10, 12)
        t.fault(11, 19, "partition", "r2", "e1")
        t.rows[-2]["value"]["links"] = [["r2", "e1"]]
        t.gauges(18, "r1", e1=(1, {}))
        self.expect(t, "stuck")

    # --- stale

    def test_a_report_may_be_a_moment_old(self):
        t = Told()
        t.stream(10, 12)
        t.gauges(12.1, "r2", e1=(0, {"r1": 1}))
        self.expect(t)

    def test_a_report_that_is_too_old_is_an_anomaly(self):
        t = Told()
        t.stream(10, 12)
        t.gauges(15.5, "r2", e1=(0, {"r1": 1}))
        self.expect(t, "stale")

    def test_a_report_from_the_other_side_of_a_cut_may_be_old(self):
        t = Told()
        t.stream(10, 12)
        t.fault(11, None, "partition", "r1", "r2")
        t.rows[-1]["value"]["links"] = [["r1", "r2"]]
        t.gauges(15.5, "r2", e1=(0, {"r1": 1}))
        self.expect(t)

    # --- dead

    def test_a_dead_routers_share_that_goes_in_time_is_right(self):
        t = Told()
        t.stream(10, 12)
        t.kill(12, "r1")
        t.gauges(14.5, "r2", e1=(0, {"r1": 1}))
        t.gauges(15.2, "r2", e1=(0, {}))
        self.expect(t)
        self.assertEqual(figures(t.history())["share of a router that ended, last seen after"]["most_ms"], 2500)

    def test_a_dead_routers_share_that_stays_is_an_anomaly(self):
        t = Told()
        t.stream(10, 12)
        t.kill(12, "r1")
        t.gauges(15.5, "r2", e1=(0, {"r1": 1}))
        self.expect(t, "dead")

    def test_a_restarted_router_may_have_a_new_share(self):
        t = Told()
        t.stream(10, 12)
        t.kill(12, "r1", again=13)
        t.stream(14, 30)
        t.gauges(18.5, "r2", e1=(0, {"r1": 1}))
        self.expect(t)

    def test_a_restarted_routers_old_share_is_an_anomaly(self):
        t = Told()
        t.stream(10, 12)
        t.kill(12, "r1", again=13)
        t.gauges(18.5, "r2", e1=(0, {"r1": 1}))
        self.expect(t, "stale")

    def test_a_router_stopped_meanwhile_may_report_a_dead_routers_share(self):
        t = Told()
        t.stream(10, 12)
        t.kill(12, "r1")
        t.fault(11, 15.4, "pause", "r2")
        t.gauges(15.5, "r2", e1=(0, {"r1": 1}))
        self.expect(t)

    def test_a_short_delay_is_an_excuse_for_a_short_time(self):
        for t_read, expected in ((20, []), (60, ["dead"])):
            t = Told()
            t.stream(10, 12)
            t.kill(12, "r1")
            t.fault(13, 13.1, "delay", "r2", harmless=True)
            t.gauges(t_read, "r2", e1=(0, {"r1": 1}))
            self.expect(t, *expected)

    def test_a_long_cut_between_routers_is_an_excuse_for_a_time(self):
        t = Told()
        t.stream(10, 12)
        t.kill(12, "r1")
        t.fault(13, 33, "partition", "r1", "r2", links=[["r1", "r2"]])
        t.gauges(50, "r2", e1=(0, {"r1": 1}))
        self.expect(t)
        t.gauges(60, "r2", e1=(0, {"r1": 1}))
        self.expect(t, "dead")

    def test_an_engines_fault_does_not_excuse_a_dead_routers_share(self):
        t = Told()
        t.stream(10, 12)
        t.kill(12, "r1")
        t.fault(11, 30, "engine-hang", "e1")
        t.gauges(15.5, "r2", e1=(0, {"r1": 1}))
        self.expect(t, "dead")

    # --- a member that lies

    def liar(self, *gauges):
        t = Told()
        t.stream(10, 30, router="r2")
        t.event(12, "liar", "start", life=1)
        t.event(20, "liar", "exit", life=1, status=-9)
        for at, by in gauges:
            t.gauges(at, "r2", e1=(1, by))
        return t

    def test_a_living_liar_may_report_any_load(self):
        self.expect(self.liar((15, {"liar": 100000}), (22, {"liar": 100000})))

    def test_a_dead_liars_load_is_an_anomaly(self):
        self.expect(self.liar((24, {"liar": 100000})), "dead")

    def test_a_liars_report_hides_no_stale_share(self):
        self.expect(self.liar((15, {"liar": 100000, "r1": 3})), "stale")

    # --- negative

    def test_a_gauge_below_zero_is_an_anomaly(self):
        for wrapped in (-1, (1 << 32) - 1, (1 << 64) - 1):
            t = Told()
            t.fault(1, None, "partition")  # nothing excuses it
            t.gauges(15.5, "r2", e1=(wrapped, {}))
            self.expect(t, "negative")

    def test_more_tokens_than_there_can_be_are_an_anomaly(self):
        for tokens, expected in ((10 ** 12, ["negative"]), (200000, []), (0, [])):
            t = Told()
            t.stream(10, 30)
            t.gauges(15.5, "r1", e1=(1, {}, 0, tokens))
            self.expect(t, *expected)

    def test_many_requests_are_not_below_zero(self):
        t = Told()
        for i in range(300):
            t.stream(10 + i / 1000, 30)
        t.gauges(15.5, "r1", e1=(300, {}))
        self.expect(t)


if __name__ == "__main__":
    unittest.main()
