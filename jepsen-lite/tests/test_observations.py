"""The checker of observations: histories that are right, wrong and tricky."""

import types
import unittest
import unittest.mock

from story import Story, rules
from checkers.observations import check, figures
from workloads import observations


class Told(Story):
    def __init__(self, routers=2, **limits):
        super().__init__("observations", routers=routers, **limits)

    def learn(self, t, op, router, engine, first, vain=None):
        seen = {self.replica(engine): [vain, first]}
        return self.operation(t, first, "learn", {"op": op, "router": router}, "ok", {"seen": seen})

    def read(self, t, router, beliefs, ops=(), listed=("e1", "e2"), how="ok"):
        """beliefs: {op: engine}"""
        beliefs = {op: {self.replica(engine): 256} for op, engine in beliefs.items()}
        value = {"router": router, "ops": sorted(set(beliefs) | set(ops))}
        return self.operation(t, t + 0.01, "read", value, how,
                              {"beliefs": beliefs, "listed": [self.replica(e) for e in listed]})


class Observations(unittest.TestCase):
    def expect(self, told, *expected):
        self.assertEqual(rules(check(told.history())), list(expected))

    # --- invented

    def test_a_belief_in_a_prompt_that_was_sent_is_right(self):
        t = Told()
        t.chat(1, "1")
        t.learn(1, "1", "r2", "e1", 1.03)
        t.rest(10)
        t.read(10.5, "r1", {"1": "e1"})
        t.read(10.6, "r2", {"1": "e1"})
        self.expect(t)

    def test_a_belief_in_a_prompt_that_nobody_sent_is_invented(self):
        t = Told()
        t.rest(10)
        t.read(10.5, "r1", {"never": "e1"})
        self.expect(t, "invented")

    def test_a_belief_before_the_prompt_was_sent_is_invented(self):
        t = Told()
        t.chat(5, "1")
        t.read(4, "r2", {"1": "e1"})
        self.expect(t, "invented")

    def test_a_belief_while_the_request_is_on_its_way_is_right(self):
        """A choice counts at once: the prompt is believed cached before the engine has it."""
        t = Told()
        t.chat(1, "1")
        t.learn(1, "1", "r1", "e1", 1.005)
        self.expect(t)

    def test_the_routers_ttl_is_read_from_the_options(self):
        for ttl, expected in (("1m", []), ("10m", ["lost"]), ("1h", ["lost"])):
            t = Told(options={"ttl": ttl})
            t.chat(1, "1")
            t.rest(100)
            t.read(100.5, "r1", {}, ["1"])
            self.expect(t, *expected)

    # --- phantom

    def test_a_belief_in_an_engine_without_the_prompt_is_a_phantom(self):
        t = Told()
        t.chat(1, "1", engine="e1")
        t.rest(20)
        t.read(20.5, "r2", {"1": "e2"}, ops=["1"])
        self.expect(t, "lost", "phantom")

    def test_an_attempt_that_a_fault_swallowed_may_be_believed(self):
        """r1 chose e2, which was unreachable, and then e1: r2 learned of both."""
        t = Told()
        t.fault(0.5, 9, "partition", "e2")
        t.chat(1, "1", engine="e1")
        t.rest(20)
        t.operation(20.5, 20.51, "read", {"router": "r2", "ops": ["1"]}, "ok",
                    {"beliefs": {"1": {t.replica("e1"): 256, t.replica("e2"): 256}},
                     "listed": [t.replica("e1"), t.replica("e2")]})
        self.expect(t)

    def test_a_refused_attempt_may_be_believed_for_a_moment(self):
        """A choice counts at once, and not for long."""
        for t_read, expected in ((5, ["lost"]), (20, ["lost", "phantom"])):
            t = Told()
            t.event(1.01, "e2", "request", op="1", request=7)
            t.event(1.02, "e2", "end", op="1", request=7, how="refused", status=503)
            t.chat(1, "1", engine="e1")
            t.rest(t_read)
            t.read(t_read + 0.5, "r2", {"1": "e2"}, ops=["1"])
            self.expect(t, *expected)

    def test_a_belief_in_a_replica_without_a_journal_is_right(self):
        """A replica of the workload membership was asked before its models were known, and had no such model."""
        t = Told()
        t.chat(1, "1", engine="e1")
        t.operation(1, 1.2, "learn", {"router": "r2", "op": "1"}, "ok", {"seen": {"10.77.4.7:9176": [1.05, 1.1]}})
        self.expect(t)

    def test_a_fault_at_another_engine_is_no_excuse(self):
        t = Told()
        t.fault(0.5, 9, "partition", "e1")
        t.chat(12, "1", router="r2", engine="e1")
        t.learn(12, "1", "r2", "e2", 12.2)
        self.expect(t, "phantom")

    def test_an_attempt_that_broke_at_the_engine_may_be_believed(self):
        t = Told()
        t.arrives(1.01, "1", "e2")
        t.chat(1.05, "1", engine="e1")
        t.learn(1.05, "1", "r2", "e2", 1.2)
        self.expect(t)

    def test_an_attempt_that_a_fault_swallowed_is_not_believed_for_ever(self):
        for t_read, expected in ((70, []), (90, ["phantom"])):
            t = Told(options={"ttl": "1m"})
            t.fault(0.5, 9, "partition", "e2")
            t.chat(1, "1", engine="e1")
            t.rest(t_read)
            t.read(t_read + 0.5, "r2", {"1": "e2"}, listed=["e2"])
            self.expect(t, *expected)

    # --- tokens, misnamed

    def test_the_number_of_believed_tokens_must_be_plausible(self):
        for tokens, expected in ((1, ["tokens"]), (80, []), (256, []), (1100, []), (10 ** 9, ["tokens"])):
            t = Told()
            t.chat(1, "1")
            t.rest(10)
            id = t.read(10.5, "r1", {"1": "e1"})
            next(r for r in t.rows if r.get("id") == id and r["type"] == "ok")["value"]["beliefs"]["1"] = {t.replica("e1"): tokens}
            self.expect(t, *expected)

    def test_few_tokens_may_be_left_after_the_ttl(self):
        t = Told(ttl_s=60)
        t.chat(1, "1")
        t.rest(70)
        id = t.read(70.5, "r1", {"1": "e1"})
        next(r for r in t.rows if r.get("id") == id and r["type"] == "ok")["value"]["beliefs"]["1"] = {t.replica("e1"): 1}
        self.expect(t)

    def test_an_answer_that_names_another_engine_is_misnamed(self):
        t = Told()
        t.arrives(1.01, "1", "e2")
        t.operation(1, 1.1, "chat", {"router": "r1"}, "ok", {"replica": t.replica("e1")}, id=1)
        self.expect(t, "misnamed")

    def test_an_answer_may_name_the_first_of_two_engines_or_none(self):
        for replica in ("e1", None):
            t = Told()
            t.arrives(1.01, "1", "e1")
            t.arrives(1.05, "1", "e2")
            t.operation(1, 1.1, "chat", {"router": "r1"}, "ok", {"replica": replica and t.replica(replica)}, id=1)
            self.expect(t)

    # --- lost

    def test_a_new_engine_and_an_unready_router_excuse_a_loss(self):
        for ready, begun, expected in ((2, 0.11, ["lost"]), (9, 0.11, []), (9, -6, ["lost"]), (None, 0.11, [])):
            t = Told()
            t.rows[0]["value"]["watched"] = True
            for row in t.rows:
                row["t"] = begun if row["f"] == "begin" else row["t"]
            if ready:
                t.event(ready, "r1", "ready", life=1)
            t.chat(3, "7", "r1", "e1")
            t.rest(20)
            t.read(20.5, "r2", {}, ["7"])
            self.expect(t, *expected)

    def test_an_acknowledged_prompt_that_is_not_believed_is_lost(self):
        t = Told()
        t.chat(1, "1")
        t.rest(10)
        t.read(10.5, "r1", {"1": "e1"})
        t.read(10.5, "r2", {}, ops=["1"])
        self.expect(t, "lost")

    def test_a_prompt_that_was_not_acknowledged_may_be_lost(self):
        t = Told()
        t.chat(1, "1", how="fail")
        t.chat(2, "2", how=None)
        t.rest(10)
        t.read(10.5, "r2", {}, ops=["1", "2"])
        self.expect(t)

    def test_without_a_calm_rest_nothing_is_lost(self):
        t = Told()
        t.chat(1, "1")
        t.read(1.2, "r2", {}, ops=["1"])
        t.rest(10, calm=False)
        t.read(10.5, "r2", {}, ops=["1"])
        self.expect(t)

    def test_an_engine_that_was_not_scored_proves_nothing(self):
        t = Told()
        t.chat(1, "1")
        t.rest(10)
        t.read(10.5, "r2", {}, ops=["1"], listed=["e2"])
        self.expect(t)

    def test_an_engines_restart_excuses_a_loss(self):
        t = Told()
        t.chat(1, "1")
        t.restart(5, "e1")
        t.rest(20)
        t.read(20.5, "r2", {}, ops=["1"])
        self.expect(t)

    def test_an_engine_that_sleeps_loses_its_cache(self):
        for asleep, rules_broken in (("e1", []), ("e2", ["lost"])):
            t = Told()
            t.chat(1, "1", engine="e1")
            t.fault(3, 5, "engine-drain", asleep, serves=True, wish={"mode": "sleep"})
            t.rest(20)
            t.read(20.5, "r2", {}, ops=["1"])
            self.expect(t, *rules_broken)

    def test_another_engines_restart_does_not_excuse_a_loss(self):
        t = Told()
        t.chat(1, "1")
        t.restart(5, "e2")
        t.rest(20)
        t.read(20.5, "r2", {}, ops=["1"])
        self.expect(t, "lost")

    def test_a_prompt_sent_before_a_restart_was_known_may_be_lost(self):
        """e1 restarted at 5.5, and r1 had not read that when it sent prompt 1; after reading it, r1 forgot that too."""
        t = Told()
        t.restart(5, "e1")
        t.chat(6, "1")
        t.chat(15, "2")
        t.rest(30)
        t.read(30.5, "r2", {}, ops=["1"])
        self.expect(t)
        t.read(30.6, "r2", {}, ops=["2"])
        self.expect(t, "lost")

    def test_the_ttl_excuses_a_loss(self):
        t = Told(ttl_s=60)
        t.chat(1, "1")
        t.rest(70)
        t.read(70.5, "r2", {}, ops=["1"])
        self.expect(t)

    def test_an_eviction_excuses_a_loss(self):
        t = Told(cache_tokens=1500)
        t.chat(1, "1")
        t.chat(2, "2")
        t.chat(3, "3", engine="e2")
        t.rest(10)
        t.read(10.5, "r2", {}, ops=["1"])
        self.expect(t, "lost")
        t.chat(4, "4")
        self.expect(t)

    def test_a_prompt_may_be_lost_with_the_only_router_that_knew(self):
        t = Told()
        t.chat(1, "1", router="r1")
        t.event(1.2, "r1", "exit", status=-9)
        t.rest(10)
        t.read(10.5, "r2", {}, ops=["1"])
        self.expect(t)

    def test_a_prompt_may_not_be_lost_if_another_router_knew(self):
        t = Told()
        t.chat(1, "1", router="r1")
        t.learn(1, "1", "r2", "e1", 1.1)
        t.event(1.2, "r1", "exit", status=-9)
        t.rest(10)
        t.read(10.5, "r2", {}, ops=["1"])
        self.expect(t, "lost")

    def test_many_alike_losses_are_one_anomaly(self):
        t = Told()
        for i in range(5):
            t.chat(1 + i, str(i + 1))
        t.rest(10)
        t.read(10.5, "r2", {}, ops=[str(i + 1) for i in range(5)])
        found = check(t.history())
        self.assertEqual(rules(found), ["lost"])
        self.assertEqual(len(found[0].ids), 10)

    # --- late

    def healing(self, took, *more, routers="r1 r2", fault="partition-one", number=100, limits=(), how="learn"):
        """r1 and r2 are cut off from each other until 20, and r2 knows this number of prompts this much later."""
        t = Told(**{"routers": 3, "observation_s": 5, **dict(limits)})
        t.fault(10, 20, fault, "r1", "r2", links=[routers.split()])
        for f in more:
            f(t)
        for i in range(1, number + 1):
            t.chat(12 + i / 50, str(i))
            if how == "learn":
                t.learn(12 + i / 50, str(i), "r2", "e1", 20 + took)
            else:
                t.operation(12 + i / 50, 20 + took, "learn", {"op": str(i), "router": "r2"}, "info", {"seen": {}})
        return t

    def test_known_in_time_after_a_partition(self):
        self.expect(self.healing(4.9))

    def test_known_late_after_a_partition(self):
        found = check(self.healing(5.1).history())
        self.assertEqual(rules(found), ["late"])
        self.assertEqual((len(found[0].ids), found[0].t), (100, 25.1))
        self.assertIn("5.1 s, p99 of 100", found[0].text)

    def test_figures_count_the_waits(self):
        said = figures(self.healing(4.9).history())
        self.assertEqual((said["waits after partitions alone"], said["... p99, s"]), (100, 4.9))

    def test_the_runs_own_limit_counts(self):
        self.expect(self.healing(1.5, limits={"observation_s": 1}), "late")
        self.expect(self.healing(9, limits={"observation_s": 10}))

    def test_a_single_late_wait_may_be_a_busy_machine(self):
        for number, expected in ((1, []), (2, ["late"])):
            self.expect(self.healing(9, number=number), *expected)

    def test_one_wait_of_a_hundred_may_be_late(self):
        for slow, expected in ((1, []), (2, ["late"])):
            t = self.healing(1, number=100 - slow)
            for i in range(101, 101 + slow):
                t.chat(19, str(i))
                t.learn(19, str(i), "r2", "e1", 28)
            self.expect(t, *expected)

    def test_a_wait_that_ended_without_knowledge_is_late_if_long_enough(self):
        """The workload waits for the newest prompts only: a wait that ended early proves nothing."""
        self.expect(self.healing(2, how="info"))
        self.expect(self.healing(6, how="info"), "late")

    def test_known_before_the_partition_ended(self):
        self.expect(self.healing(-1))

    def test_prompts_sent_after_the_partition_do_not_count(self):
        t = self.healing(1, number=0)
        for i in range(1, 150):
            t.chat(21, str(i))
            t.learn(21, str(i), "r2", "e1", 40)
        self.expect(t)

    def test_another_fault_excuses_a_late_wait(self):
        for begin, end, expected in ((15, 24, []), (1, 3, ["late"]), (1, 7, []), (30, 31, ["late"])):
            self.expect(self.healing(9, lambda t: t.fault(begin, end, "loss", "r3")), *expected)

    def test_a_fault_of_another_kind_is_no_partition(self):
        self.expect(self.healing(9, fault="pause"))

    def test_a_fault_at_another_engine_excuses_nothing(self):
        """Nor does it count as the delaying fault of r2, though it ends last."""
        for engine, expected in (("e1", []), ("e2", ["late"])):
            self.expect(self.healing(9, lambda t: t.fault(19, 28, "cache lost", engine)), *expected)

    def test_two_partitions_in_a_row(self):
        """Knowledge that the second partition kept from r2 is not the first one's fault."""
        self.expect(self.healing(9, lambda t: t.fault(21, 26, "partition-ring", "r1", "r2", links=[["r2", "r3"]])))
        self.expect(self.healing(12, lambda t: t.fault(21, 26, "partition-ring", "r1", "r2", links=[["r2", "r3"]])), "late")

    def test_a_router_cut_off_from_the_engine_may_know_later(self):
        self.expect(self.healing(9, routers="e1 r2"))
        self.expect(self.healing(9, routers="e2 r2"), "late")

    def test_a_restarted_process_excuses_a_late_wait(self):
        self.expect(self.healing(9, lambda t: t.event(15, "r3", "exit", status=-9)))
        self.expect(self.healing(9, lambda t: t.event(15, "r3", "start", life=2)))

    # --- silent

    def test_a_router_that_is_silent_at_rest_is_an_anomaly(self):
        t = Told()
        t.rest(10)
        t.read(5, "r1", {}, how="fail")
        self.expect(t, "blind")
        t.read(10.5, "r1", {}, how="info")
        self.expect(t, "silent")

    # --- figures

    def test_figures_have_the_time_until_a_prompt_is_known(self):
        t = Told()
        t.chat(1, "1")
        t.learn(1, "1", "r2", "e1", 1.03)
        t.fault(5, 15, "partition", "r1", "r2")
        t.chat(6, "2")
        t.learn(6, "2", "r2", "e1", 15.5)
        t.fault(20, 30, "pause", "r2")
        t.fault(26, 35, "loss", "r1")
        t.chat(21, "3")
        t.learn(21, "3", "r2", "e1", 31)
        f = figures(t.history())
        known = f["until a router knows, by fault"]
        self.assertEqual(known["none"], {"count": 1, "p50_ms": 20.0, "p99_ms": 20.0, "most_ms": 20.0})
        self.assertEqual(known["partition"]["most_ms"], 9490)
        self.assertEqual(set(known), {"none", "partition", "loss+pause"})
        # Prompt 3 was known while packets were still lost: its time is no figure of healing.
        self.assertEqual(f["until a router knows after a fault is over"],
                         {"partition": {"count": 1, "p50_ms": 500.0, "p99_ms": 500.0, "most_ms": 500.0}})
        self.assertEqual(f["given up"], 0)


class Asking(unittest.TestCase):
    """Each wait lasts until the router knows: a wait that is given up early is one that would have been late."""

    def test_old_waits_are_not_given_up_for_new_ones(self):
        operation = types.SimpleNamespace(ended=None, ok=None, info=None)
        recorder = types.SimpleNamespace(now=lambda: 0.0, invoke=lambda *_: operation)
        asker = observations.Asker(types.SimpleNamespace(recorder=recorder, taught={}), types.SimpleNamespace(name="r1"))
        asker.wake.set()
        with unittest.mock.patch.object(observations.beliefs, "explain", lambda *_: None):
            for first in (0, 100):
                for i in range(first, first + 20):
                    asker.watch(str(i), b"")
                asker.turn()
        self.assertEqual([op for op, _ in asker.waits], [str(i) for i in range(observations.WAITS_MAX)])


if __name__ == "__main__":
    unittest.main()
