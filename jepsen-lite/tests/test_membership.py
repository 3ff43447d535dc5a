"""The checker of members, digests and wishes: histories that are right, wrong and tricky."""

import unittest

from story import Story, rules
from checkers.membership import check, figures
from workloads.membership import was_so


class Told(Story):
    def __init__(self, routers=3, **limits):
        super().__init__("membership", routers=routers, **limits)
        self.names = ["r%d" % i for i in range(1, routers + 1)]
        self.round = 0

    def look(self, t, router, round=None, how="ok", states=None, sessions=None, equal=None, differ=None, there=(),
             drained=(), unsure=()):
        members = {n: "alive" for n in self.names}
        members.update(states or {})
        return self.operation(t, t + 0.01, "look", {"router": router, "round": round}, how, {
            "members": members, "sessions": sessions or {}, "equal": equal, "differ": differ,
            "replicas": ["e1:1", "e2:1", *there], "drained": list(drained),
            "unsure": list(unsure)})

    def resting(self, t, *rounds, living=None):
        """Each round: {router: what differs there}."""
        self.rest(t, seconds=len(rounds) + 1)
        for i, some in enumerate(rounds):
            self.round += 1
            for router in living or self.names:
                self.look(t + i + 0.1, router, self.round, **{"equal": True, **some.get(router, {})})

    def change(self, t, what, router="r1", how="ok", end=None, replica="x:9"):
        return self.operation(t, end or t + 0.01, "change", {"router": router, "replica": replica, "what": what,
                                                             "by": "admin"}, how)

    def cut(self, begin, end, *pairs):
        self.fault(begin, end, "partition", *sorted({n for p in pairs for n in p}))
        start = self.rows[-1 if end is None else -2]
        start["value"]["links"] = [list(p) for p in pairs]

    def alone(self, begin, end, router):
        self.cut(begin, end, *[(router, n) for n in self.names if n != router])

    def kill(self, t, router, again=None):
        self.event(t, router, "exit", status=-9)
        if again:
            self.event(again, router, "start", life=2)

    def dead(self, t, router, member):
        self.event(t, router, "log", event="member_dead", member=member)


class Words(unittest.TestCase):
    def test_answers_that_nothing_changed_are_recognised(self):
        for said, so in (({"ok": True, "replica": "10.0.4.1:9100", "already": True}, True),
                         ({"ok": True, "replica": "already.example:9100"}, False),
                         ("10.0.4.1:9100 is among the replicas already", True), ("10.0.4.1:9100 was removed before", True),
                         ("10.0.4.1:9100 is removed for all routers; nothing is under way there", False),
                         ("already:9100 is added for all routers", False)):
            self.assertEqual(was_so(said), so, said)


class Rests(unittest.TestCase):
    def expect(self, told, *expected):
        self.assertEqual(rules(check(told.history())), list(expected))

    def test_routers_that_agree_at_rest_are_right(self):
        t = Told()
        t.resting(20, {})
        self.expect(t)
        self.assertEqual(figures(t.history())["until all agree at rest"]["none"]["count"], 1)

    def test_a_router_that_is_silent_at_rest_is_an_anomaly(self):
        t = Told()
        t.resting(20, {"r2": {"how": "fail"}})
        self.expect(t, "silent")

    def test_a_router_that_does_not_run_need_not_answer(self):
        t = Told()
        t.kill(10, "r3")
        t.resting(20, {r: {"states": {"r3": "dead"}} for r in t.names}, living=["r1", "r2"])
        self.expect(t)

    def test_a_router_that_left_need_not_be_listed(self):
        t = Told()
        t.kill(10, "r3")
        t.names.remove("r3")
        t.resting(20, {})
        self.expect(t)

    def test_a_dead_router_listed_as_alive_is_an_anomaly(self):
        t = Told()
        t.kill(10, "r3")
        t.resting(20, {}, living=["r1", "r2"])
        self.expect(t, "members")

    def test_a_living_router_listed_as_dead_is_an_anomaly(self):
        t = Told()
        t.resting(20, {"r1": {"states": {"r3": "dead"}}})
        self.expect(t, "members")

    def test_two_routers_that_never_met_are_an_anomaly(self):
        t = Told()
        t.resting(20, {"r1": {"sessions": {"r3": False}}})
        self.expect(t, "members")

    def test_members_may_need_a_moment_to_agree(self):
        t = Told()
        t.resting(20, {"r1": {"states": {"r3": "suspect"}}}, {"r2": {"states": {"r3": "dead"}}}, {})
        self.expect(t)

    def test_a_calm_rest_without_readings_is_blind(self):
        for calm, expected in ((True, ["blind"]), (False, [])):
            t = Told()
            t.rest(20, 3, calm=calm)
            t.look(20.5, "r1")
            self.expect(t, *expected)

    def test_a_rest_without_routers_is_not_blind(self):
        t = Told()
        for name in t.names:
            t.kill(10, name)
        t.rest(20, 3)
        self.expect(t)

    def test_a_refused_change_that_shows_is_an_anomaly(self):
        t = Told()
        t.change(10, "add", how="fail")
        t.look(20, "r1")
        self.expect(t)
        t.look(21, "r2", there=["x:9"])
        self.expect(t, "refused")
        t.change(22, "add", "r2")
        self.expect(t, "refused")

    def test_a_refused_change_may_have_been_made_at_another_router(self):
        for how in ("ok", "info", None):
            t = Told()
            t.change(10, "add", how="fail")
            t.change(11, "add", "r2", how=how)
            t.look(20, "r1", there=["x:9"])
            self.expect(t)

    def already(self, told, t, what, router="r1"):
        told.operation(t, t + 0.01, "change", {"router": router, "replica": "x:9", "what": what, "by": "admin"}, "ok",
                       {"already": True})

    def test_an_answer_that_nothing_changed_must_be_true(self):
        for before, what, expected in ((None, "add", ["late"]), ("add", "add", []), ("add", "remove", ["late"]),
                                       (None, "remove", []), (None, "undrain", [])):
            t = Told()
            if before:
                t.change(10, before)
            self.already(t, 20, what)
            self.expect(t, *expected)

    def test_a_change_of_unknown_outcome_may_be_why_nothing_changed(self):
        t = Told()
        t.change(10, "add", "r2", how="info")
        self.already(t, 20, "add")
        self.expect(t)

    def test_digests_that_differ_at_rest_are_an_anomaly(self):
        t = Told()
        t.resting(20, {"r1": {"equal": False, "differ": "index"}}, {"r2": {"equal": False}})
        self.expect(t, "digests")

    def test_digests_may_differ_for_a_moment_at_rest(self):
        t = Told()
        t.resting(20, {"r1": {"equal": False, "differ": "index"}}, {"r1": {"equal": True}})
        self.expect(t)

    def test_before_a_rest_everything_may_differ(self):
        t = Told()
        t.look(15, "r1", equal=False, states={"r2": "suspect"})
        t.resting(20, {})
        self.expect(t)

    def test_replicas_that_differ_at_rest_are_an_anomaly(self):
        t = Told()
        t.resting(20, {"r1": {"there": ["y:1"]}})
        self.expect(t, "replicas")

    def test_a_lie_of_the_name_server_is_an_excuse_for_a_while(self):
        for lied_s, expected in ((60, []), (9, ["replicas"])):
            t = Told()
            t.fault(lied_s, lied_s + 3, "dns-lie", "ns", more=["y"])
            t.resting(90, {"r1": {"there": ["y:1"], "drained": ["y:1"]}})
            self.expect(t, *expected)

    def test_drains_that_differ_at_rest_are_an_anomaly(self):
        t = Told()
        t.resting(20, {"r1": {"drained": ["e1:1"]}})
        self.expect(t, "replicas")

    def test_a_replica_that_is_down_does_not_show_its_drain(self):
        t = Told()
        t.resting(20, {"r1": {"drained": ["e1:1"]}, "r2": {"drained": ["e1:1"]}, "r3": {"unsure": ["e1:1"]}})
        self.expect(t)

    def test_another_replica_at_all_routers_is_right(self):
        t = Told()
        t.resting(20, {r: {"there": ["y:1"]} for r in t.names})
        self.expect(t)

    # --- dead

    def test_a_running_router_that_is_marked_dead_is_an_anomaly(self):
        t = Told()
        t.dead(15, "r1", "r2")
        self.expect(t, "dead")

    def test_a_line_delayed_by_a_frozen_disk_counts_as_earlier(self):
        for process, expected in (("r1", []), ("r3", ["dead"])):
            t = Told()
            t.alone(8, 10, "r2")
            t.fault(9, 20, "disk-frozen", process, excuses=False)
            t.dead(20.5, "r1", "r2")
            self.expect(t, *expected)

    def test_a_key_rotation_alone_is_no_excuse(self):
        for excuses, expected in ((False, ["dead"]), (True, [])):
            t = Told()
            t.fault(10, 16, "rotate-keys", "r1", "r2", excuses=excuses)
            t.dead(15, "r1", "r2")
            self.expect(t, *expected)

    def test_a_fault_of_the_wall_clock_is_no_excuse(self):
        for fault in ("clock-jump", "clock-skew", "clock-rate"):
            t = Told()
            t.fault(10, 16, fault, "r2", harmless=True)
            t.dead(15, "r1", "r2")
            self.expect(t, "dead")

    def test_a_killed_router_may_be_marked_dead(self):
        t = Told()
        t.kill(13, "r2")
        t.dead(15, "r1", "r2")
        self.expect(t)

    def test_a_router_that_is_back_at_once_may_be_marked_dead(self):
        """The others may have marked the router dead before it began again."""
        t = Told()
        t.kill(12, "r2", again=14)
        t.dead(14.2, "r1", "r2")
        self.expect(t)

    def test_a_stopped_router_may_be_marked_dead(self):
        t = Told()
        t.fault(12, 14.5, "pause", "r2")
        t.dead(15, "r1", "r2")
        self.expect(t)

    def test_a_router_on_the_other_side_of_a_cut_may_be_marked_dead(self):
        t = Told()
        t.alone(10, 20, "r2")
        t.dead(12.2, "r1", "r2")
        t.dead(12.2, "r2", "r1")
        self.expect(t)

    def test_a_router_on_the_same_side_of_a_cut_may_not_be_marked_dead(self):
        """r3 was cut off, and says that r2 is dead; r1 could hear r2 all along."""
        t = Told()
        t.alone(10, 20, "r3")
        t.dead(20.2, "r1", "r2")
        self.expect(t, "dead")

    def test_an_engines_fault_is_no_excuse(self):
        t = Told()
        t.fault(10, 20, "engine-hang", "e1")
        t.dead(15, "r1", "r2")
        self.expect(t, "dead")

    def test_a_clock_jump_is_no_excuse(self):
        t = Told()
        t.fault(10, 20, "clock-jump", "r2")
        t.dead(15, "r1", "r2")
        self.expect(t, "dead")

    def test_packet_loss_is_an_excuse(self):
        t = Told()
        t.fault(10, 20, "loss", "r2")
        t.rows[-2]["value"]["harmless"] = True
        t.dead(15, "r1", "r2")
        self.expect(t)


class Wishes(unittest.TestCase):
    def expect(self, told, *expected):
        self.assertEqual(rules(check(told.history())), list(expected))

    def added(self, routers=3):
        t = Told(routers)
        t.change(10, "add")
        return t

    def test_a_replica_added_everywhere_in_time_is_right(self):
        t = self.added()
        for i, r in enumerate(t.names):
            t.look(10.3 + i / 10, r, there=["x:9"])
        self.expect(t)
        self.assertEqual(figures(t.history())["until a wish is seen at another"]["none"]["count"], 2)

    def test_a_replica_may_take_a_moment_to_be_added(self):
        t = self.added()
        t.look(10.3, "r2")
        self.expect(t)

    def test_a_replica_that_is_not_added_in_time_is_late(self):
        t = self.added()
        t.look(11.5, "r2")
        self.expect(t, "late")

    def test_a_replica_that_the_called_router_lacks_is_late(self):
        t = self.added()
        t.look(10.3, "r1")
        self.expect(t, "late")

    def test_an_add_that_changed_nothing_may_be_lost(self):
        """The replica still drains at that router, and another caller removed it: the add changed nothing."""
        t = self.added()
        t.change(12, "drain")
        t.alone(13, 20, "r3")
        t.change(14, "remove")
        t.change(16, "add", router="r3")
        t.rows[-1]["value"]["already"] = True
        t.look(17, "r3", there=["x:9"], drained=["x:9"])
        t.look(31, "r3")
        self.expect(t)

    def test_a_refused_add_need_not_show(self):
        t = Told()
        t.change(10, "add", how="fail")
        t.look(20, "r1")
        self.expect(t)

    def test_an_add_of_unknown_outcome_may_show_or_not(self):
        for there in ((), ("x:9",)):
            t = Told()
            t.change(10, "add", how="info")
            t.look(20, "r2", there=there)
            self.expect(t)

    def test_an_add_may_show_before_its_answer(self):
        t = Told()
        t.change(10, "add", end=12)
        t.look(11, "r2", there=["x:9"])
        self.expect(t)

    def test_a_replica_seen_before_and_after_its_removal_is_late(self):
        t = Told()
        t.look(9, "r2", there=["x:9"])
        t.change(9.005, "remove")
        t.look(9.5, "r2", there=["x:9"])
        self.expect(t, "late")

    # --- one after the other

    def changed(self):
        t = self.added()
        t.look(11.5, "r2", there=["x:9"])
        t.change(12, "remove", router="r2")
        return t

    def test_a_replica_removed_everywhere_in_time_is_right(self):
        t = self.changed()
        for r in t.names:
            t.look(13.5, r)
        self.expect(t)

    def test_a_replica_that_is_not_removed_in_time_is_late(self):
        t = self.changed()
        t.look(13.5, "r3", there=["x:9"])
        self.expect(t, "late")

    def test_a_removed_replica_that_returns_is_an_anomaly(self):
        t = self.changed()
        t.look(13.5, "r3")
        t.look(14, "r3", there=["x:9"])
        t.look(15, "r3", there=["x:9"])
        self.expect(t, "returned")

    def test_a_drain_that_shows_in_time_is_right(self):
        t = self.added()
        t.change(12, "drain", router="r3")
        t.look(12.1, "r1", there=["x:9"])
        t.look(13.5, "r1", there=["x:9"], drained=["x:9"])
        self.expect(t)

    def test_a_drain_that_does_not_show_in_time_is_late(self):
        t = self.added()
        t.change(12, "drain", router="r3")
        t.look(13.5, "r1", there=["x:9"])
        self.expect(t, "late")

    def test_a_drain_that_cannot_be_seen_is_not_late(self):
        t = self.added()
        t.change(12, "drain", router="r3")
        t.look(13.5, "r1", there=["x:9"], unsure=["x:9"])
        self.expect(t)

    def test_a_removed_replica_need_not_drain(self):
        t = self.added()
        t.change(12, "drain")
        t.change(14, "remove")
        t.look(16, "r2")
        self.expect(t)

    def test_a_replica_added_again_does_not_drain(self):
        t = self.added()
        t.change(12, "drain")
        t.change(14, "remove")
        t.change(16, "add")
        t.look(18, "r2", there=["x:9"])
        self.expect(t)

    def test_a_replica_added_again_that_drains_is_late(self):
        t = self.added()
        t.change(12, "drain")
        t.change(14, "remove")
        t.change(16, "add")
        t.look(18, "r2", there=["x:9"], drained=["x:9"])
        self.expect(t, "late")

    def test_either_of_two_concurrent_changes_may_win(self):
        """The drain and the undrain did not know of each other: either may win, if the same wins everywhere."""
        for drained in ((), ("x:9",)):
            t = self.added()
            t.alone(12, 20, "r3")
            t.change(13, "drain", router="r1")
            t.change(18, "drain", router="r3")
            t.change(19, "undrain", router="r3")
            t.look(33, "r2", there=["x:9"], drained=drained)
            self.expect(t)

    # --- faults

    def test_a_router_cut_off_meanwhile_may_lack_a_change(self):
        t = Told()
        t.alone(9, 20, "r2")
        t.change(10, "add")
        t.look(15, "r2")
        t.look(22, "r2")
        t.look(15, "r3", there=["x:9"])
        self.expect(t)

    def test_a_router_cut_off_long_ago_may_not_lack_a_change(self):
        t = Told()
        t.alone(9, 20, "r2")
        t.change(10, "add")
        t.look(30.5, "r2")
        self.expect(t, "late")

    def test_a_cut_of_other_routers_is_no_excuse(self):
        t = Told(4)
        t.cut(9, 20, ("r3", "r4"))
        t.change(10, "add")
        t.look(12, "r2")
        self.expect(t, "late")

    def test_a_clock_fault_does_not_excuse_a_missing_change(self):
        t = Told()
        t.fault(9, 12, "clock-jump", "r2")
        t.change(10, "add")
        t.look(23, "r2")
        self.expect(t, "late")

    def test_a_router_that_began_later_may_take_a_moment(self):
        t = Told()
        t.kill(9, "r2", again=30)
        t.change(10, "add")
        t.look(31, "r2")
        t.look(41, "r2", there=["x:9"])
        self.expect(t)

    def test_a_router_that_began_later_must_learn_a_change(self):
        t = Told()
        t.kill(9, "r2", again=30)
        t.change(10, "add")
        t.look(41, "r2")
        self.expect(t, "late")

    def test_a_change_may_be_lost_if_its_router_died_at_once(self):
        for there in ((), ("x:9",)):
            t = self.added()
            t.kill(10.2, "r1")
            t.look(25, "r2", there=there)
            self.expect(t)

    def test_a_change_may_not_be_lost_if_its_router_died_later(self):
        t = self.added()
        t.kill(14, "r1")
        t.look(25, "r2")
        self.expect(t, "late")

    def test_a_change_may_be_lost_if_its_router_died_cut_off(self):
        t = Told()
        t.alone(9, 15, "r1")
        t.change(10, "add")
        t.kill(14, "r1", again=16)
        t.look(40, "r2")
        self.expect(t)

    def test_a_change_may_not_be_lost_if_another_router_had_it(self):
        """r3 was cut off while r1 lived, and can learn the change from r2 since."""
        t = Told()
        t.alone(9, 20, "r3")
        t.change(10, "add")
        t.kill(15, "r1")
        t.look(31, "r3")
        self.expect(t, "late")

    def test_a_change_may_be_lost_if_all_routers_died(self):
        t = self.added()
        for r in t.names:
            t.kill(15, r, again=16)
        t.look(40, "r2")
        self.expect(t)


class Lies(unittest.TestCase):
    def told(self, *looks, start=None):
        """A member that announced names until 20 s: lists of each router by time."""
        t = Told()
        t.fault(10, 20, "member-lies", "liar", harmless=True, more=["10.77.251.5"])
        if start:
            t.kill(start - 1, "r2", again=start)
        for at, router in looks:
            t.look(at, router, there=["10.77.251.5:8000"])
        return rules(check(t.history()))

    def test_false_names_that_go_in_time_are_right(self):
        self.assertEqual(self.told((30, "r1"), (104, "r1")), [])

    def test_false_names_that_stay_are_an_anomaly(self):
        self.assertEqual(self.told((104, "r1"), (106, "r1"), (107, "r2"), (108, "r1")), ["lingers", "lingers"])

    def test_a_router_that_starts_late_may_list_false_names_once_more(self):
        self.assertEqual(self.told((106, "r1"), start=60), [])
        self.assertEqual(self.told((106, "r1"), start=25), ["lingers"])

    def test_routers_may_list_different_false_names_for_a_time(self):
        for at, expected in ((60, []), (130, ["replicas", "lingers"])):
            t = Told()
            t.fault(10, 20, "member-lies", "liar", harmless=True, more=["10.77.251.5"])
            t.resting(at, {"r1": {"there": ["10.77.251.5:8000"]}})
            self.assertEqual(sorted(rules(check(t.history()))), sorted(expected))


if __name__ == "__main__":
    unittest.main()
