"""The checker of confidentiality and its search: histories and packets that are right, wrong and tricky."""

import random
import types
import unittest

from story import Story, rules
from checkers.confidentiality import check, figures
from checkers.needles import Needles, Streams, address_needles
from workloads.confidentiality import Workload

R1, R2 = "10.0.1.1", "10.0.1.2"


class Search(unittest.TestCase):
    def setUp(self):
        self.needles = Needles()
        self.needles.add("prompt", b"marvellous", b"marvel")
        self.needles.add("hash", bytes.fromhex("0102030405ff"))

    def found(self, data):
        return [(kind, at) for kind, _, at in self.needles.find(data)]

    def test_no_needle_is_found_in_other_bytes(self):
        self.assertEqual(self.found(b""), [])
        self.assertEqual(self.found(b"marve"), [])
        self.assertEqual(self.found(random.Random(1).randbytes(100000)), [])

    def test_needles_are_found_anywhere(self):
        self.assertEqual(self.found(b"xx" + bytes.fromhex("0102030405ff")), [("hash", 2)])
        self.assertEqual(self.found(b"amarvel"), [("prompt", 1)])
        self.assertEqual(self.found(b"marvellous marvels"), [("prompt", 0), ("prompt", 0), ("prompt", 11)])

    def test_the_beginning_of_a_needle_is_not_found(self):
        self.needles.add("prompt", b"extraordinary")
        self.assertEqual(self.found(b"extraordinarx"), [])

    def test_short_needles_are_refused(self):
        with self.assertRaises(ValueError):
            self.needles.add("prompt", b"word")

    def test_a_needle_is_found_across_pieces_of_a_stream(self):
        streams = Streams(self.needles)
        self.assertEqual(streams.find(1, b"xx\x01\x02\x03"), [])
        self.assertEqual(streams.find(2, b"\x04\x05\xff"), [])  # another stream
        self.assertEqual([k for k, _, _ in streams.find(1, b"\x04\x05\xff")], ["hash"])
        self.assertEqual(streams.find(1, b"yy"), [])  # it is found once

    def test_addresses_are_found_in_each_form(self):
        self.needles.add("address", *address_needles("10.77.2.1", [8000]))
        for bytes_ in (b"http://10.77.2.1:8000", bytes([10, 77, 2, 1, 0x1f, 0x40]), bytes([1, 2, 77, 10, 0x40, 0x1f]),
                       bytes([0xff, 0xff, 10, 77, 2, 1])):
            self.assertIn("address", [kind for kind, _ in self.found(bytes_)])
        self.assertEqual(self.found(bytes([10, 77, 2, 2, 0x1f, 0x40])), [])


class Told(Story):
    def __init__(self):
        super().__init__("confidentiality")

    def searched(self, t, *hits, packets=100):
        self.event(t, "c1", "confidentiality.searched", packets=packets, bytes=packets * 100, needles={"hash": 1},
                   hits=[{"kind": "hash", "needle": h, "from": "r1", "to": "r2", "at": 3} for h in hits])

    def control(self, t, **found):
        self.event(t, "c1", "confidentiality.control", sought={"hash": 3, "prompt": 3}, found=found)

    def inject(self, t, router="r1", sent=100, answers=(), how="replayed"):
        return self.operation(t, t + 0.1, "inject", {"to": router, "how": how, "by": "intruder"}, "ok",
                              {"sent": sent, "answers": list(answers)})

    def state(self, t, moment, refused=0, router="r1", injection=1, **state):
        return self.operation(t, t + 0.01, "state", {"router": router, "injection": injection, "moment": moment}, "ok",
                              dict({"members": ["r1", "r2"]}, refused=refused, **state))

    def injected(self, t, sent=100, refused=100, calm=True, **after):
        self.rest(t, calm=calm)
        self.state(t + 0.1, "before", 7)
        self.inject(t + 0.5, sent=sent)
        self.state(t + 1, "after", 7 + refused, **after)


class Confidentiality(unittest.TestCase):
    def expect(self, told, *expected):
        self.assertEqual(rules(check(told.history())), list(expected))

    def test_a_right_history_has_no_anomaly(self):
        t = Told()
        t.searched(10)
        t.control(11, hash=3, prompt=1)
        t.injected(20)
        self.expect(t)
        self.assertEqual(figures(t.history())["packets replayed"], 100)

    def test_a_needle_is_reported_once(self):
        t = Told()
        t.searched(10, "aa", "bb")
        t.searched(20, "aa", "bb")
        self.expect(t, "clear", "clear")

    def test_one_hash_alone_may_be_chance(self):
        """With tens of thousands of six-byte hashes in a quarter of a gigabyte, one matches by chance once in many
        hours."""
        t = Told()
        t.searched(10, "aa")
        t.searched(20, "bb")
        self.expect(t)

    def test_a_rest_without_a_control_search_is_blind(self):
        t = Told()
        t.searched(10)
        t.rest(20)
        self.expect(t, "blind")

    def test_a_search_without_packets_is_blind(self):
        t = Told()
        t.searched(10)
        t.searched(20, packets=0)
        self.expect(t, "blind")

    def test_two_searches_in_a_row_may_have_no_packets(self):
        t = Told()
        t.searched(10)
        t.searched(10.2, packets=0)
        self.expect(t)
        for i in range(1, 7):
            t.searched(10.2 + i, packets=0)
        self.expect(t, "blind")

    def test_no_packets_are_expected_after_a_router_ended(self):
        t = Told()
        t.event(5, "r1", "exit", status=-9)
        t.searched(4)
        t.searched(20, packets=0)
        self.expect(t)

    def test_a_control_search_that_finds_nothing_is_blind(self):
        t = Told()
        t.control(11, prompt=3)
        self.expect(t, "blind")

    def test_an_answer_to_a_replay_is_an_anomaly(self):
        t = Told()
        t.inject(10, answers=["04aabb"])
        t.operation(11, 12, "call", {"to": "r1", "how": "replayed"}, "ok", {"sent": 90, "answer": "00"})
        self.expect(t, "answered", "answered")

    def test_a_replayed_hello_may_get_only_a_welcome(self):
        """A captured call that was cut behind its hello: a whole one, to which a welcome belongs, and nothing else."""
        for answer, expected in (("3000" + 48 * "18", ()), ("3000" + 49 * "18", ("answered",)),
                                 ("2f00" + 48 * "18", ("answered",))):
            t = Told()
            t.operation(11, 12, "call", {"to": "r1", "how": "altered"}, "ok", {"sent": 54, "answer": answer})
            self.expect(t, *expected)
        t = Told()
        t.inject(10, answers=["3000" + 48 * "18"])
        self.expect(t, "answered")

    def test_a_replay_without_an_answer_is_right(self):
        t = Told()
        t.inject(10)
        t.operation(11, 12, "call", {"to": "r1", "how": "replayed"}, "ok", {"sent": 90, "answer": ""})
        t.operation(11, 12, "call", {"to": "r1", "how": "replayed"}, "fail", {"error": "refused"})
        self.expect(t)

    def test_members_changed_by_an_injection_are_an_anomaly(self):
        t = Told()
        t.injected(20, members=["r1", "r2", "intruder"])
        self.expect(t, "changed")

    def test_names_and_poison_are_forgotten_in_long_runs(self):
        for what, early, late in (("registry", 200, 300), ("poison", 300, 1444)):
            for t_s, found in ((early, ["changed"]), (late, [])):
                t = Told()
                t.rest(t_s)
                t.state(t_s + 0.1, "before", **{what: "3eb5"})
                t.state(t_s + 1, "after", **{what: "0cfb"})
                self.expect(t, *found)

    def test_a_name_without_a_source_may_disappear(self):
        """Seen: a name server lied; half a minute later, at a rest, all routers dropped the name."""
        told, added = ["10.0.1.3:8000", "none", 3], ["10.0.2.1:8000", "added", 0]
        for lied_s, before, after, found in ((60, [told, added], [added], []), (9, [told, added], [added], ["changed"]),
                                             (60, [told, added], [told], ["changed"]),
                                             (60, [added], [told, added], []),
                                             (9, [added], [told, added], ["changed"]),
                                             (60, [], [told, added], ["changed"])):
            t = Told()
            t.event(lied_s, "nemesis", "start", id="n", fault="dns-lie", hosts=["ns"], text="a lie", more=["10.0.1.3"])
            t.event(lied_s + 1, "nemesis", "stop", id="n", fault="dns-lie")
            t.rest(90)
            t.state(90.1, "before", replicas=before, registry="3eb5")
            t.state(91, "after", replicas=after, registry="3eb5" if found else "0cfb")
            self.expect(t, *found)

    def test_a_pause_of_the_machine_excuses_changed_members(self):
        for stood_s, found in ((15, []), (5, ["changed"])):
            t = Told()
            t.event(stood_s, "nemesis", "start", id="n", fault="machine", hosts=["r1", "r2"], text="it stood still")
            t.event(stood_s + 2, "nemesis", "stop", id="n", fault="machine")
            t.injected(20, members=[["r1", 2]])
            self.expect(t, *found)

    def test_a_hash_found_often_is_an_anomaly(self):
        for times, expected in ((9, []), (10, ["clear"])):
            t = Told()
            t.searched(10, *["aa"] * times)
            t.searched(20, *["aa"] * times)
            self.expect(t, *expected)

    def test_a_router_silent_after_an_injection_is_an_anomaly(self):
        for stood, how, ended, expected in (((), "fail", False, ["silent"]), ((17, 19), "fail", False, []),
                                            ((), "fail", True, []), ((), "ok", False, [])):
            t = Told()
            t.rest(20)
            if stood:
                t.fault(*stood, "machine", "r1", "r2")
            t.state(20.1, "before", 7)
            t.operation(21, 21.1, "state", {"router": "r1", "injection": 1, "moment": "after"}, how,
                        {"members": ["r1", "r2"], "refused": 7} if how == "ok" else {"error": "timed out"})
            if ended:
                t.event(20.9, "r1", "exit", status=-9)
            self.expect(t, *expected)

    def test_a_welcome_without_a_hello_is_an_anomaly(self):
        t = Told()
        t.operation(11, 12, "call", {"to": "r1", "how": "random"}, "ok", {"sent": 300, "answer": "3000" + 48 * "18"})
        self.expect(t, "answered")

    def test_time_slices_may_expire(self):
        for after, ttl, expected in (({}, False, ["changed"]), ({"6": 10}, False, ["changed"]), ({"8": 1}, False, []),
                                     ({}, True, [])):
            t = Told()
            if ttl:
                t.rows[0]["value"]["options"] = {"ttl": "1m"}
            t.rest(20)
            t.state(20.1, "before", entries={"7": 10})
            t.state(21, "after", entries=after)
            self.expect(t, *expected)

    def test_a_time_slice_may_begin(self):
        t = Told()
        t.rest(20)
        t.state(20.1, "before", entries={"7": 100})
        t.state(21, "after", entries={"8": 0})
        t.state(20.2, "before", injection=2, entries={"7": 100})
        t.state(21, "after", injection=2, entries={"7": 101, "8": 0})
        self.expect(t, "changed")

    def test_members_may_change_without_a_rest(self):
        t = Told()
        t.injected(20, calm=False, members=["r1"])
        self.expect(t)

    def test_an_accepted_packet_is_an_anomaly(self):
        t = Told()
        t.injected(20, refused=99)
        self.expect(t, "accepted")

    def test_more_refusals_than_injections_are_right(self):
        """The packets of other senders may be refused, too."""
        t = Told()
        t.injected(20, refused=101)
        self.expect(t)

    def test_injections_at_another_router_do_not_count(self):
        t = Told()
        t.injected(20)
        t.inject(20.7, router="r2", sent=50)
        self.expect(t)

    def test_a_restart_resets_the_count_of_refusals(self):
        t = Told()
        t.rest(20)
        t.state(20.1, "before", 500)
        t.event(20.2, "r1", "exit", status=-9)
        t.event(20.3, "r1", "start", life=2)
        t.inject(20.5)
        t.state(21, "after", 100)
        self.expect(t)


class Hellos(unittest.TestCase):
    """The intruder keeps hellos that arrived, because they were answered."""

    def setUp(self):
        self.workload = Workload.__new__(Workload)
        self.workload.hellos, self.workload.asked = {}, {}
        hosts = {name: types.SimpleNamespace(name=name, address=address) for name, address in (("r1", R1), ("r2", R2))}
        self.workload.service = types.SimpleNamespace(hosts=hosts)

    def say(self, t, source, target, kind):
        packet = types.SimpleNamespace(t=t, source=source, target=target, data=bytes([kind]) + b"...")
        self.workload.keep_hello(packet)
        return packet

    def kept(self):
        return {name: list(packets) for name, packets in self.workload.hellos.items()}

    def test_an_answered_hello_is_kept(self):
        hello = self.say(1, R1, R2, 1)
        self.say(1.001, R2, R1, 2)
        self.assertEqual(self.kept(), {"r2": [hello]})

    def test_an_unanswered_hello_is_not_kept(self):
        self.say(1, R1, R2, 1)
        self.say(1.001, R2, R1, 1)
        self.say(1.002, R2, R1, 3)
        self.assertEqual(self.kept(), {})

    def test_a_late_answer_may_be_to_an_earlier_hello(self):
        self.say(1, R1, R2, 1)
        self.say(3, R2, R1, 2)
        self.assertEqual(self.kept(), {})


if __name__ == "__main__":
    unittest.main()
