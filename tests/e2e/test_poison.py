"""A request that kills engines, against simulated SGLang: how many does it take, and who suffers?"""

import json
import os
import signal
import threading
import time
import unittest

from lib import LIMIT, Case, Cut, wait_for
from lib_cluster import Clustered, gvctl

COMPLETIONS = "/v1/completions"
POISON = {"model": "sim", "prompt": [4000000000], "max_tokens": 4}


def asks(n, tokens=40, stream=True):
    return {"model": "sim", "prompt": "%d words of a prompt" % n, "max_tokens": tokens,
            "ignore_eos": True, "stream": stream}


class Load:
    """Clients that ask one request after another, until told to stop."""

    def __init__(self, case, routers, clients=3, **how):
        self.stopping = threading.Event()
        self.results, self.slowest = [], 0.0
        self.case = case
        self.threads = [threading.Thread(target=self._run, args=(routers[i % len(routers)], i, how))
                        for i in range(clients)]
        for t in self.threads:
            t.start()

    def _run(self, router, number, how):
        n = number * 100000
        while not self.stopping.is_set():
            n += 1
            began = time.monotonic()
            try:
                got = self.case.client(router).post(COMPLETIONS, asks(n, **how))
                whole = got.status == 200 and (b"[DONE]" in got.body or not how.get("stream", True))
                self.results.append((got.status if whole else "cut", got.get("x-grapevine-replica"),
                                     got.get("x-grapevine-reason")))
            except (Cut, OSError) as e:
                self.results.append(("cut", None, repr(e)))
            self.slowest = max(self.slowest, time.monotonic() - began)

    def stop(self):
        self.stopping.set()
        for t in self.threads:
            t.join(30)
        return self.results


def count(sims):
    return sum(s.running() for s in sims)


class Sims:
    def left(self, sims, n):
        """So many live on, and go on doing so."""
        wait_for(lambda: count(sims) <= n, "%d engines left" % n)
        self.assertEqual(count(sims), n)

    def sglang(self, n, *args):
        return [self.sim("--engine", "sglang", "--output-tokens", "5", *args) for _ in range(n)]


class OneRouter(Sims, Case):
    def ready(self, sims, *args):
        r = self.router([s.url for s in sims], "--scrape-interval", "200ms", *args)
        r.wait_up(len(sims))
        return r

    def test_it_takes_no_second_engine_while_others_work_there(self):
        sims = self.sglang(2)
        r = self.ready(sims)
        load = Load(self, [r], clients=4, tokens=200)
        time.sleep(1)
        for _ in range(3):  # the client's library repeats it twice
            got = self.client(r).post(COMPLETIONS, POISON)
            self.assertEqual((got.status, got.get("x-grapevine-reason")), (502, "suspect"))
        results = load.stop()
        self.left(sims, 1)
        cut = [x for x in results if x[0] != 200]
        self.assertLessEqual(len(cut), 4, results)  # what had begun where it died
        self.assertLess(load.slowest, LIMIT)

    def test_an_engine_is_kept_free_for_it_where_there_are_others(self):
        sims = self.sglang(4)
        r = self.ready(sims)
        load = Load(self, [r], clients=6, tokens=60)
        time.sleep(1)
        got = self.client(r).post(COMPLETIONS, POISON)
        self.assertEqual(got.status, 502)
        results = load.stop()
        self.assertGreaterEqual(count(sims), 2)
        # What had begun where it died first; nothing was beside it at the second.
        self.assertLess(len([x for x in results if x[0] != 200]), 6, results)
        cut_at = {e["replica"] for e in r.events("upstream_failed") if e["answering"]}
        self.assertLessEqual(len(cut_at), 1, cut_at)
        self.assertLess(load.slowest, LIMIT)

    def test_an_idle_one_is_its_last(self):
        sims = self.sglang(3)
        r = self.ready(sims)
        got = self.client(r).post(COMPLETIONS, POISON)
        self.assertEqual((got.status, got.get("x-grapevine-reason")), (502, "poison"))
        self.left(sims, 1)
        got = self.client(r).post(COMPLETIONS, POISON)
        self.assertEqual((got.status, got.get("x-grapevine-reason")), (502, "poison"))
        self.left(sims, 1)
        self.assertEqual(self.client(r).post(COMPLETIONS, asks(1)).status, 200)
        self.assertEqual(r.metric("poison_remembered"), 1)
        self.assertEqual(r.metric('requests_refused_total{reason="poison"}'), 2)

        shown = r.admin("GET", "/poison").json
        self.assertEqual([(p["state"], p["refused"], len(p["replicas"])) for p in shown],
                         [("poison", 2, 2)])
        status, out, _ = gvctl("poison", admin=r.admin_port)
        self.assertEqual(status, 0)
        self.assertIn(shown[0]["hash"], out)
        logged = r.events("poison")
        self.assertEqual([e["hash"] for e in logged], [shown[0]["hash"]])
        self.assertNotIn("4000000000", json.dumps(r.events()))
        self.assertEqual(gvctl("forget", "0" * 16, admin=r.admin_port)[0], 1)
        self.assertEqual(gvctl("forget", shown[0]["hash"], admin=r.admin_port)[0], 0)
        self.assertEqual(r.admin("GET", "/poison").json, [])
        self.assertEqual(r.metric("poison_remembered"), 0)

    def test_without_the_retry_it_takes_one(self):
        sims = self.sglang(3)
        r = self.ready(sims, "--poison-retry", "off")
        got = self.client(r).post(COMPLETIONS, POISON)
        self.assertEqual((got.status, got.get("x-grapevine-reason"), got.get("x-grapevine-limit")),
                         (502, "suspect", "poison-retry"))
        self.left(sims, 2)

    def killed(self, sims, args=(), busy=0):
        """Kills an engine with many requests in prefill; returns what their clients got."""
        r = self.ready(sims, *args)
        load = Load(self, [r], clients=busy, tokens=100) if busy else None
        results, threads = [], []

        def ask(n):
            body = {"model": "sim", "prompt": "p%d " % n * 4000, "max_tokens": 4, "stream": False}
            got = self.client(r).post(COMPLETIONS, body)
            results.append(got.status)
        for n in range(8):
            threads.append(threading.Thread(target=ask, args=(n,)))
            threads[-1].start()
        wait_for(lambda: r.metric('replica_requests{replica="%s"}' % sims[0].name) >= 3,
                 "requests at the first")
        sims[0].signal(signal.SIGKILL)
        for t in threads:
            t.join(30)
        return results, load.stop() if load else [], r

    def test_a_kill_loses_nothing_that_had_no_token(self):
        results, _, r = self.killed(self.sglang(2, "--prefill-rate", "8000"))
        self.assertEqual(results, [200] * 8)
        self.assertEqual(r.admin("GET", "/poison").json, [])

    def test_a_kill_loses_nothing_where_the_other_is_busy(self):
        results, others, _ = self.killed(self.sglang(2, "--prefill-rate", "8000"), busy=3)
        self.assertEqual(results, [200] * 8)
        self.assertEqual([x for x in others if x[0] not in (200, "cut")], [])

    def test_a_hang_is_no_death(self):
        sims = self.sglang(2)
        r = self.ready(sims, "--upstream-first-token-timeout", "6s")
        results = []

        def ask(n):
            results.append(self.client(r).post(COMPLETIONS, asks(n)).status)
        sims[0].signal(signal.SIGSTOP)
        try:
            threads = [threading.Thread(target=ask, args=(n,)) for n in range(6)]
            for t in threads:
                t.start()
            for t in threads:
                t.join(30)
        finally:
            sims[0].signal(signal.SIGCONT)
        self.assertNotIn(502, results)
        self.assertEqual(r.admin("GET", "/poison").json, [])


class ThreeRouters(Sims, Clustered):
    def test_all_routers_refuse_it(self):
        sims = self.sglang(3)
        nodes = self.cluster(3, sims)
        got = self.client(nodes[0]).post(COMPLETIONS, POISON)
        self.assertEqual((got.status, got.get("x-grapevine-reason")), (502, "poison"))
        self.left(sims, 1)
        self.converge(nodes[0], 3)
        for r in nodes:
            got = self.client(r).post(COMPLETIONS, POISON)
            self.assertEqual((got.status, got.get("x-grapevine-reason")), (502, "poison"))
            self.assertEqual(self.client(r).post(COMPLETIONS, asks(1)).status, 200)
        self.left(sims, 1)
        hash = nodes[2].admin("GET", "/poison").json[0]["hash"]
        self.assertEqual(gvctl("forget", hash, admin=nodes[2].admin_port)[0], 0)
        self.converge(nodes[0], 3)
        for r in nodes:
            self.assertEqual(r.admin("GET", "/poison").json, [])
        late = self.node("r4", sims, join=nodes[0])
        self.converge(late, 4)

    def test_a_router_that_joins_later_knows_it(self):
        sims = self.sglang(3)
        nodes = self.cluster(2, sims)
        self.assertEqual(self.client(nodes[0]).post(COMPLETIONS, POISON).status, 502)
        late = self.node("r3", sims, join=nodes[1])
        wait_for(lambda: late.admin("GET", "/poison").json, "poison at the new router")
        got = self.client(late).post(COMPLETIONS, POISON)
        self.assertEqual((got.status, got.get("x-grapevine-reason")), (502, "poison"))
        self.left(sims, 1)

    def test_a_suspect_is_one_everywhere_and_kills_nobody_who_works(self):
        sims = self.sglang(2)
        nodes = self.cluster(3, sims)
        load = Load(self, nodes, clients=6, tokens=300)
        time.sleep(1)
        for r in nodes:
            wait_for(lambda: r is nodes[0] or r.admin("GET", "/poison").json, "the suspect at another router")
            got = self.client(r).post(COMPLETIONS, POISON)
            self.assertEqual(got.status, 502)
        results = load.stop()
        self.left(sims, 1)
        self.assertLess(load.slowest, LIMIT)
        # What was cut had begun at the engine that died. Under sanitizers, beside other jobs, the
        # one that lives stood still for too long once.
        if "asan" not in os.environ.get("BUILD", ""):
            self.assertLessEqual(len([x for x in results if x[0] != 200]), 6, results)


if __name__ == "__main__":
    unittest.main()
