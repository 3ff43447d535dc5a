"""A replica that rejects (4xx) at once what its peers accept. It computes nothing, so it has room for
everything, and must not get it. A 4xx counts against it only if a peer accepts the same bytes."""

import json
import threading
import unittest

from lib import SSE_HEAD, answer_json, chunk, wait_for, work_for
from lib_cluster import Clustered, gvctl

CHAT = "/v1/chat/completions"
GOOD = {"choices": [{"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}]}
STATUSES = (400, 401, 403, 404, 405, 413, 415, 422)
WORK_S = 0.1  # of a good answer


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
        """With each of these in turn; `only`: bodies with that member alone."""
        good, lock, turn = e.handler, threading.Lock(), [0]

        def handler(asked):
            asked.read_body()
            if only and only not in json.loads(asked.body):
                good(asked)
                return
            with lock:
                turn[0] += 1
                status = statuses[turn[0] % len(statuses)]
            e.rejected += 1
            asked.send(error(status))
        e.rejected = 0
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

    def check(self, routers, bad, requests, clients, make=body, share=0.02):
        """At most that share of the requests reach it, and clients see at most 1 %."""
        got = self.load(routers, requests, clients, make)
        failed = sum(status != 200 for status in got)
        self.assertLessEqual(bad.rejected, requests * share)
        self.assertLessEqual(failed, requests * 0.01)


class One(Rejecting):
    """One of several replicas rejects."""

    def test_each_status(self):
        for status in STATUSES:
            bad = self.rejects(self.good(), status)
            r = self.router([bad, self.good(), self.good()])
            self.check([r], bad, 150, 12, share=0.05)  # a third of the clients' first ones
            r.stop()

    def test_streams(self):
        bad = self.rejects(self.good(), *STATUSES)
        r = self.router([bad] + [self.good() for _ in range(7)])
        self.check([r], bad, 300, 24, streamed)
        self.assertEqual(self.of(r, "answers_total", bad, ',outcome="rejected"'), bad.rejected)
        self.assertEqual(self.of(r, "answers_total", bad, ',outcome="ok"'), 0)
        self.assertEqual(self.of(r, "rejecting", bad), 1)
        self.assertEqual(self.why(r, bad), "rejects")
        event = r.events("replica_rejects")[0]
        self.assertEqual((event["replica"], event["level"]), (bad.name, "warn"))

    def test_it_served_well_before(self):
        """And then its key is another one, in the midst of all that is under way."""
        bad = self.good()
        r = self.router([bad] + [self.good() for _ in range(7)])
        self.load([r], 200, 24)
        self.rejects(bad, *STATUSES)
        self.check([r], bad, 400, 24)

    def test_three_routers(self):
        bad = self.rejects(self.good(), *STATUSES)
        nodes = self.cluster(3, [bad] + [self.good() for _ in range(7)])
        for r in nodes:
            r.wait_up(8)
        self.check(nodes, bad, 400, 24)
        for r in nodes:
            wait_for(lambda: self.of(r, "rejecting", bad) == 1, "heard of it")

    def test_explain_leaves_it_out(self):
        """It was a candidate as any other, and even the choice: the path of /explain has no API. Not so for other
        requests, which it is not known to reject."""
        bad = self.rejects(self.good(), 401)
        nodes = self.cluster(3, [bad, self.good(), self.good()])
        for r in nodes:
            r.wait_up(3)
        wait_for(lambda: self.load(nodes[:1], 1, 1) and self.why(nodes[0], bad) == "rejects", "it is caught")
        wait_for(lambda: all(self.of(r, "rejecting", bad) == 1 for r in nodes), "all heard of it")
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

    def test_a_model_that_it_lists(self):
        """It lists the model and answers 404 for it. Each router tells so, once."""
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
            self.assertEqual(out.count("rejects (404) the model m, though it lists it"), 1)

    def test_some_requests_only(self):
        """No tool parser: it keeps what has no tools."""
        bad = self.rejects(self.good(), 400, only="tools")
        r = self.router([bad] + [self.good() for _ in range(3)])
        self.check([r], bad, 300, 12, with_tools)
        self.assertGreater(len(bad.requests) - bad.rejected, 20)

    def test_it_is_mended(self):
        bad = self.rejects(self.good(), 401)
        peers = [self.good(), self.good()]
        nodes = self.cluster(3, [bad] + peers)
        for r in nodes:
            r.wait_up(3)
        self.load(nodes, 30, 6)
        wait_for(lambda: all(self.of(r, "rejecting", bad) for r in nodes), "heard of it")
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
        """The half is the same at each router, in fact and as they show it, and no client sees the others."""
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

        lost = []

        def caught():
            lost.extend(status for status in self.load(nodes, 8, 4) if status != 200)
            return all(sum(self.of(r, "rejecting", e) + self.of(r, "rejecting_used", e) for e in engines) == 3
                       for r in nodes)
        wait_for(caught, "all three are caught")
        wait_for(lambda: len({tuple(sorted(self.avoided(r))) for r in nodes}) == 1, "they agree")
        self.assertLessEqual(len(lost), 12 * routers)  # until one accepted something, and can be asked
        kept = self.avoided(nodes[0])
        used = [e for e in engines[:3] if e.name not in kept][0]
        before = {e.name: e.rejected for e in engines[:3]}
        self.assertEqual(set(self.load(nodes, 120, 12)), {200})
        over.set()
        watcher.join()
        self.assertEqual(max(most), 2)
        share = used.rejected - before[used.name]
        self.assertTrue(10 <= share <= 40, share)
        for e in engines[:3]:
            self.assertTrue(e is used or e.rejected - before[e.name] <= 4, "trials alone")
        for r in nodes:
            self.assertEqual(self.avoided(r), kept)
            self.assertEqual(self.of(r, "rejecting_used", used), 1)
            self.assertEqual(self.of(r, "rejecting", used) + self.of(r, "backing_off", used), 0)
        status, out, _ = gvctl("replicas", admin=nodes[0].admin_port)
        self.assertEqual(status, 0)
        self.assertIn("used, though it answers 400 to ", out)
        self.assertIn("compare its chat template", out)

    def test_one_router(self):
        self.half(1)

    def test_three_routers(self):
        self.half(3)


class Others(Rejecting):
    """Nobody is to blame but the client, or all are alike."""

    def test_a_bad_client(self):
        """Its requests are rejected everywhere, and go to one replica alone, by their session."""
        engines = [self.good() for _ in range(4)]
        for e in engines:
            self.rejects(e, 400, only="bad")
        r = self.router(engines, "--policy", "session")
        got = self.load([r], 200, 4, lambda n: body(n, bad=True, user="one"))
        self.assertEqual(set(got), {400})
        self.assertLessEqual(sum(e.rejected for e in engines), 200 + 20)
        self.assertEqual(set(self.load([r], 40, 4)), {200})
        for e in engines:
            self.assertEqual(self.of(r, "rejecting", e), 0)

    def test_a_bad_prompt_and_a_broken_replica(self):
        """Of two programs behind one address, without keys, and by the same status."""
        engines = [self.good() for _ in range(4)]
        for e in engines:
            self.rejects(e, 400, only="bad")
        r = self.router(engines)
        said = "the same long beginning of every prompt " * 40

        def bad(n):
            return body(bad=True, messages=[{"role": "user", "content": "%s %d" % (said, n)}])
        self.load([r], 12, 1, bad)
        broken = self.rejects(engines[0], 400)
        lost, lock = [], threading.Lock()

        def mixed(n):
            return bad(n) if n % 3 == 0 else body(n, messages=[{"role": "user", "content": "%d is unlike " % n * 40}])

        def run():
            client = self.client(r)
            for n in range(20):
                status = client.ask("POST", CHAT, mixed(n)).status
                with lock:
                    lost.append((n % 3 != 0 and status != 200, n % 3 == 0 and status != 400))
        threads = [threading.Thread(target=run) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertLessEqual(sum(good for good, _ in lost), 2)
        self.assertEqual(sum(other for _, other in lost), 0)
        self.assertEqual([e.name for e in engines if self.why(r, e) == "rejects"], [broken.name])

    def test_all_reject_alike(self):
        engines = [self.rejects(self.good(), 401) for _ in range(8)]
        nodes = self.cluster(3, engines)
        for r in nodes:
            r.wait_up(8)
        got = self.load(nodes, 600, 12)
        self.assertEqual(set(got), {401})
        self.assertLessEqual(sum(e.rejected for e in engines), 600 * 1.06)
        for r in nodes:
            self.assertEqual(len(r.events("replica_rejects")), 0)

    def test_the_first_answer_is_the_clients(self):
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
