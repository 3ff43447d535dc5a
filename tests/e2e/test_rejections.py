"""A replica that rejects (4xx) at once requests that its peers accept. Such a replica computes nothing, so it always
seems idle, but it must not get the requests. A 4xx counts against the replica only if a peer accepts the same bytes.

The time and price of the detection depend on the requests under way at that moment. Each decision is tested in
tests/unit/replica/reject_test.c, tests/unit/route/reject_test.c and the stories 260 to 269. These tests wait for the
detection. The result is certain: only trials reach the replica, and no client sees one."""

import itertools
import json
import math
import threading
import time
import unittest

from lib import SSE_HEAD, answer_json, chunk, wait_for, work_for
from lib_cluster import Clustered, gvctl

CHAT = "/v1/chat/completions"
GOOD = {"choices": [{"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}]}
STATUSES = (400, 401, 403, 404, 405, 413, 415, 422)
WORK_S = 0.1  # time of a good answer


def body(n=0, **more):
    return json.dumps(dict({"model": "m", "messages": [{"role": "user", "content": "hi %d" % n}]},
                           **more)).encode()


def streamed(n=0):
    return body(n, stream=True)


def with_tools(n=0):
    tools = [{"type": "function", "function": {"name": "f"}}]
    return body(n, tools=tools) if n % 3 == 0 else body(n)


def error(status):
    """Some are longer than what a router keeps of an error."""
    message = "not here" * (2000 if status % 2 else 1)
    return answer_json({"error": {"message": message, "type": "E", "code": status}}, status)


class Rejecting(Clustered):
    def good(self):
        e = self.engine()

        def handler(asked):
            asked.read_body()
            work_for(WORK_S)
            if not json.loads(asked.body).get("stream"):
                asked.send(answer_json(GOOD))
                return
            asked.send(SSE_HEAD)
            delta = {"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": None}]}
            asked.send(chunk(b"data: " + json.dumps(delta).encode() + b"\n\n"))
            asked.send(chunk(b"data: [DONE]\n\n") + chunk(b""))
        e.handler = handler
        return e

    def rejects(self, e, *statuses, only=None):
        """The engine rejects with these statuses in turn; `only`: only bodies with this member."""
        good, lock, turn = e.handler, threading.Lock(), [0]

        def handler(asked):
            asked.read_body()
            if only and only not in json.loads(asked.body):
                e.served += 1
                good(asked)
                return
            with lock:
                turn[0] += 1
                status = statuses[turn[0] % len(statuses)]
                e.rejected += 1
            asked.send(error(status))
        e.rejected = e.served = 0
        e.handler = handler
        return e

    def load(self, routers, requests, clients, make=body, headers=()):
        """The statuses that clients got; they ask one after the other, each at one router."""
        lock, got, left = threading.Lock(), [], [requests]

        def run(n):
            client = self.client(routers[n % len(routers)])
            while True:
                with lock:
                    if left[0] == 0:
                        return
                    left[0] -= 1
                    number = left[0]
                status = client.ask("POST", CHAT, make(number), headers=headers).status
                with lock:
                    got.append(status)
        threads = [threading.Thread(target=run, args=(n,)) for n in range(clients)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(len(got), requests)
        return got

    def of(self, r, metric, e, labels=""):
        return r.metric('replica_%s{replica="%s"%s}' % (metric, e.name, labels))

    def rows(self, r):
        return {row["name"]: row for row in r.admin("GET", "/replicas").json}

    def why(self, r, e):
        return self.rows(r)[e.name]["why"]

    def catch(self, routers, bad, make=body):
        """Sends requests one by one until each router counts rejections against the replica. Returns their statuses."""
        got = []

        def held():
            got.extend(self.load(routers[:1], 1, 1, make))
            return all(self.of(r, "rejecting", bad) == 1 for r in routers)
        wait_for(held, "it is caught")
        return set(got)

    def check(self, routers, bad, make=body):
        """The replica is detected, then only trials reach it, and no client sees a trial's result."""
        statuses = self.catch(routers, bad, make)
        self.only_trials(routers, [bad], make)
        return statuses

    def only_trials(self, routers, bad, make=body, requests=120):
        """The back-off is 5 s at first and doubles, and one trial follows each: this limits the number of trials."""
        before, began = {e.name: e.rejected for e in bad}, time.monotonic()
        self.assertEqual(set(self.load(routers, requests, 12, make)), {200})
        trials = len(routers) * (1 + int(math.log2(1 + (time.monotonic() - began) / 5)))
        for e in bad:
            self.assertLessEqual(e.rejected - before[e.name], trials)


class One(Rejecting):
    """One of several replicas rejects."""

    def test_each_rejection_status_is_detected(self):
        for status in STATUSES:
            bad = self.rejects(self.good(), status)
            r = self.router([bad, self.good(), self.good()])
            self.assertEqual(self.check([r], bad), {200})
            r.stop()

    def test_rejected_streams_are_detected(self):
        bad = self.rejects(self.good(), *STATUSES)
        r = self.router([bad] + [self.good() for _ in range(7)])
        self.assertEqual(self.check([r], bad, streamed), {200})
        self.assertEqual(self.of(r, "answers_total", bad, ',outcome="rejected"'), bad.rejected)
        self.assertEqual(self.of(r, "answers_total", bad, ',outcome="ok"'), 0)
        self.assertEqual(self.of(r, "rejecting", bad), 1)
        self.assertEqual(self.why(r, bad), "rejects")
        event = r.events("replica_rejects")[0]
        self.assertEqual((event["replica"], event["level"]), (bad.name, "warn"))

    def test_a_replica_that_served_well_before_is_detected(self):
        """Then the replica's key changes. Its first rejections pass for the clients' fault."""
        bad = self.good()
        r = self.router([bad, self.good(), self.good()])
        wait_for(lambda: self.load([r], 12, 12) and len(bad.requests) > 2, "it serves")
        self.rejects(bad, 401)
        self.assertLessEqual(self.check([r], bad), {200, 401})

    def test_three_routers_detect_the_replica(self):
        bad = self.rejects(self.good(), *STATUSES)
        nodes = self.cluster(3, [bad] + [self.good() for _ in range(7)])
        for r in nodes:
            r.wait_up(8)
        self.assertEqual(self.check(nodes, bad), {200})

    def test_explain_leaves_a_rejecting_replica_out(self):
        """Before, the replica was a candidate and even the choice, because the path of /explain has no API. It stays
        a candidate for other requests, which it is not known to reject."""
        bad = self.rejects(self.good(), 401)
        nodes = self.cluster(3, [bad, self.good(), self.good()])
        for r in nodes:
            r.wait_up(3)
        self.catch(nodes, bad)
        completion = json.dumps({"model": "m", "prompt": "hi"}).encode()
        for asked, left_out in ((body(), True), (completion, False)):
            one = nodes[0].admin("POST", "/explain", asked).json
            every = nodes[0].admin("POST", "/explain?all=1", asked).json["nodes"]
            self.assertEqual(len(every), 3)
            for said in [one] + list(every.values()):
                self.assertEqual(bad.name in [c["replica"] for c in said["replicas"]], not left_out, said)
                why = [c["why"] for c in said["left_out"] if c["replica"] == bad.name]
                words = "avoided: it answers 401 to chat requests where its peers accept the key"
                self.assertEqual(why, [words] * left_out)

    def test_a_replica_that_lists_a_model_and_denies_it_is_reported(self):
        """The replica lists the model and answers 404 for it. Each router reports this once."""
        bad, good = self.good(), self.good()
        bad.replies(answer_json({"error": {"message": "The model `m` does not exist.", "type": "NotFoundError",
                                           "param": "model", "code": 404}}, 404))
        nodes = self.cluster(2, [bad, good])
        for r in nodes:
            r.wait_up(2)

            def held():
                self.assertEqual(set(self.load([r], 4, 2)), {200})
                return self.why(r, bad) == "rejects"
            wait_for(held, "it is told")
            self.load([r], 20, 4)
            row = self.rows(r)[bad.name]
            self.assertEqual((row["rejects_status"], row["health"]), (404, "up"))
            self.assertEqual(row["why_text"], "avoided: it answers that it does not know 1 of the models that it lists")
            self.assertEqual([(e["replica"], e["status"], e["model"]) for e in r.events("replica_rejects")],
                             [(bad.name, "404", "m")])
            self.assertEqual(self.of(r, "rejecting", bad), 1)
            self.assertEqual(self.of(r, "rejecting", good), 0)
            self.assertGreater(self.of(r, "rejections_total", bad, ',peer="accepted"'), 0)
            status, out, _ = gvctl("replicas", admin=r.admin_port)
            self.assertEqual(status, 0)
            self.assertIn("does not know 1 of the models that it lists: compare its model", out)
            status, out, _ = gvctl("status", admin=r.admin_port)
            self.assertIn("does not know 1 of the models", out)
            status, out, _ = gvctl("events", admin=r.admin_port)
            self.assertEqual(out.count("rejects requests (404) for the model m, which it lists"), 1)

    def test_a_replica_that_rejects_only_tools_keeps_other_requests(self):
        """The replica has no tool parser."""
        bad = self.rejects(self.good(), 400, only="tools")
        r = self.router([bad] + [self.good() for _ in range(3)])
        self.assertEqual(self.check([r], bad, with_tools), {200})
        before = bad.served
        wait_for(lambda: self.load([r], 4, 4) and bad.served > before + 4, "it serves the others")

    def test_a_repaired_replica_is_used_again(self):
        bad = self.rejects(self.good(), 401)
        peers = [self.good(), self.good()]
        nodes = self.cluster(3, [bad] + peers)
        for r in nodes:
            r.wait_up(3)
        self.catch(nodes, bad)
        good = peers[0].handler
        bad.handler = good

        def used():
            self.load(nodes, 6, 6)
            return not any(self.of(r, "rejecting", bad) for r in nodes)
        wait_for(used, "used again", limit=60)
        self.assertEqual(sum(len(r.events("replica_accepts")) for r in nodes), 1)


class Half(Rejecting):
    """More than half of the replicas reject."""

    def avoided(self, r):
        return {name for name, row in self.rows(r).items() if row["avoided"] and row["why"] == "rejects"}

    def half(self, routers):
        """Each router avoids the same half and shows this, and no client sees a rejection."""
        engines = [self.good() for _ in range(4)]
        for e in engines[:3]:
            self.rejects(e, 400)
        nodes = self.cluster(routers, engines) if routers > 1 else [self.router(engines)]
        for r in nodes:
            r.wait_up(4)
        over, most = threading.Event(), []

        def watch():
            while not over.wait(0.02):
                most.extend(len(self.avoided(r)) for r in nodes)
        watcher = threading.Thread(target=watch)
        watcher.start()

        def caught():
            self.load(nodes, 8, 4)
            return all(sum(self.of(r, "rejecting", e) + self.of(r, "rejecting_used", e) for e in engines) == 3
                       for r in nodes)
        wait_for(caught, "all three are caught")
        wait_for(lambda: len({tuple(sorted(self.avoided(r))) for r in nodes}) == 1, "they agree")
        kept = self.avoided(nodes[0])
        used = [e for e in engines[:3] if e.name not in kept][0]
        before = used.rejected
        self.only_trials(nodes, [e for e in engines[:3] if e is not used])
        wait_for(lambda: set(self.load(nodes, 12, 12)) == {200} and used.rejected > before, "it has a share")
        over.set()
        watcher.join()
        self.assertEqual(max(most), 2)
        for r in nodes:
            self.assertEqual(self.avoided(r), kept)
            self.assertEqual(self.of(r, "rejecting_used", used), 1)
            self.assertEqual(self.of(r, "rejecting", used) + self.of(r, "backing_off", used), 0)
        status, out, _ = gvctl("replicas", admin=nodes[0].admin_port)
        self.assertEqual(status, 0)
        self.assertIn("used, though it answers 400 to ", out)
        self.assertIn("compare its chat template", out)

    def test_one_router_avoids_the_rejecting_half(self):
        self.half(1)

    def test_three_routers_avoid_the_rejecting_half(self):
        self.half(3)


class Others(Rejecting):
    """Only the client is to blame, or all replicas are alike."""

    def test_a_bad_client_does_not_discredit_a_replica(self):
        """The client's requests are rejected everywhere, and their session sends them to one replica only."""
        engines = [self.good() for _ in range(4)]
        for e in engines:
            self.rejects(e, 400, only="bad")
        r = self.router(engines, "--policy", "session")
        got = self.load([r], 60, 1, lambda n: body(n, bad=True, user="one"))
        self.assertEqual(set(got), {400})
        self.assertLess(sum(e.rejected for e in engines), 60 + 20)  # hardly any is tried elsewhere
        self.assertEqual(set(self.load([r], 40, 4)), {200})
        for e in engines:
            self.assertEqual(self.of(r, "rejecting", e), 0)

    def test_a_bad_prompt_and_a_broken_replica(self):
        """Two programs behind one address, without keys, with the same status."""
        engines = [self.good() for _ in range(4)]
        for e in engines:
            self.rejects(e, 400, only="bad")
        r = self.router(engines)
        said = "the same long beginning of every prompt " * 40

        def bad(n):
            return body(bad=True, messages=[{"role": "user", "content": "%s %d" % (said, n)}])
        self.load([r], 12, 1, bad)
        broken = self.rejects(engines[0], 400)
        numbers = itertools.count()

        def good(_):
            return body(messages=[{"role": "user", "content": "%d is unlike " % next(numbers) * 40}])

        self.catch([r], broken, good)
        got = {}
        threads = [threading.Thread(target=lambda make=make: got.update({make: set(self.load([r], 60, 4, make))}))
                   for make in (good, bad)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(got, {good: {200}, bad: {400}})
        self.assertEqual([e.name for e in engines if self.why(r, e) == "rejects"], [broken.name])

    def test_replicas_that_all_reject_stay_in_use(self):
        engines = [self.rejects(self.good(), 401) for _ in range(8)]
        nodes = self.cluster(3, engines)
        for r in nodes:
            r.wait_up(8)
        got = self.load(nodes, 180, 3)
        self.assertEqual(set(got), {401})
        self.assertLess(sum(e.rejected for e in engines), 180 * 1.5)  # to try elsewhere does not pay
        for r in nodes:
            self.assertEqual(len(r.events("replica_rejects")), 0)

    def test_the_client_gets_the_first_rejection(self):
        engines = [self.engine(), self.engine()]
        for e in engines:
            e.replies(answer_json({"error": {"message": "by " + e.name}}, 422, [("x-of", e.name)]))
        r = self.router(engines)
        got = self.client(r).ask("POST", CHAT, body())
        self.assertEqual([len(e.requests) for e in engines], [1, 1])
        first = got.get("x-of")
        self.assertEqual((got.status, got.json["error"]["message"]), (422, "by " + first))
        self.assertEqual(got.get("x-grapevine-replica"), first)


if __name__ == "__main__":
    unittest.main()
