"""A request that kills engines, against simulated SGLang: how many engines die, and which clients lose an answer?"""

import json
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
    """Clients that ask one request after another, until stopped."""

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
        """This number of engines stays alive."""
        wait_for(lambda: count(sims) <= n, "%d engines left" % n)
        self.assertEqual(count(sims), n)

    def sglang(self, n, *args):
        return [self.sim("--engine", "sglang", "--output-tokens", "5", *args) for _ in range(n)]


class OneRouter(Sims, Case):
    def test_a_killed_engine_loses_no_request_if_the_other_is_busy(self):
        """An engine is killed with many requests in prefill."""
        sims = self.sglang(2, "--prefill-rate", "8000")
        r = self.router([s.url for s in sims], "--scrape-interval", "200ms")
        r.wait_up(len(sims))
        load = Load(self, [r], clients=3, tokens=100)
        results, threads = [], []

        def at(sim):
            return r.metric('replica_requests{replica="%s"}' % sim.name)

        def ask(n):
            body = {"model": "sim", "prompt": "p%d " % n * 4000, "max_tokens": 4, "stream": False}
            got = self.client(r).post(COMPLETIONS, body)
            results.append(got.status)
        for n in range(8):
            threads.append(threading.Thread(target=ask, args=(n,)))
            threads[-1].start()
        wait_for(lambda: sum(map(at, sims)) >= 8, "all of them at the two")
        max(sims, key=at).signal(signal.SIGKILL)
        for t in threads:
            t.join(30)
        self.assertEqual(results, [200] * 8)
        self.assertEqual([x for x in load.stop() if x[0] not in (200, "cut")], [])
        self.assertEqual(r.admin("GET", "/poison").json, [])


    def test_a_large_poison_body_is_recognised_by_all_its_bytes(self):
        """A body that differs only in the middle is another request."""
        sims = self.sglang(3)
        r = self.router([s.url for s in sims])
        r.wait_up(len(sims))

        def large(token):
            return {**POISON, "prompt": [777777] * 2500 + [token] + [777777] * 2500}
        deadly, harmless = 9000000, 1000000  # as long: the vocabulary ends between them
        got = self.client(r).post(COMPLETIONS, large(deadly))
        self.assertEqual((got.status, got.get("x-grapevine-reason")), (502, "poison"))
        self.left(sims, 1)
        self.assertEqual(self.client(r).post(COMPLETIONS, large(harmless)).status, 200)
        self.assertEqual(self.client(r).post(COMPLETIONS, large(deadly)).status, 502)
        self.left(sims, 1)


class ThreeRouters(Sims, Clustered):
    def test_all_routers_refuse_a_poison_request(self):
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
        late = self.node("r4", sims, join=nodes[0])
        wait_for(lambda: late.admin("GET", "/poison").json, "poison at the new router")
        self.assertEqual(self.client(late).post(COMPLETIONS, POISON).status, 502)
        self.left(sims, 1)

        self.assertEqual(nodes[0].metric("poison_remembered"), 1)
        self.assertEqual(nodes[0].metric('requests_refused_total{reason="poison"}'), 2)
        shown = nodes[0].admin("GET", "/poison").json
        self.assertEqual([(p["state"], len(p["replicas"])) for p in shown], [("poison", 2)])
        self.assertEqual([e["hash"] for e in nodes[0].events("poison")], [shown[0]["hash"]])
        self.assertNotIn("4000000000", json.dumps(nodes[0].events()))
        status, out, _ = gvctl("poison", admin=nodes[2].admin_port)
        self.assertEqual(status, 0)
        self.assertIn(shown[0]["hash"], out)
        self.assertEqual(gvctl("forget", "0" * 16, admin=nodes[2].admin_port)[0], 1)
        self.assertEqual(gvctl("forget", shown[0]["hash"], admin=nodes[2].admin_port)[0], 0)
        self.converge(nodes[0], 4)
        for r in nodes + [late]:
            self.assertEqual(r.admin("GET", "/poison").json, [])
            self.assertEqual(r.metric("poison_remembered"), 0)

    def test_a_suspect_is_known_everywhere_and_kills_no_busy_engine(self):
        sims = self.sglang(2)
        nodes = self.cluster(3, sims, "--watchdog", "0")  # a busy machine is no engine that hangs
        load = Load(self, nodes, clients=6, tokens=300)

        def at(sim):
            return sum(r.metric('replica_requests{replica="%s"}' % sim.name) for r in nodes)
        wait_for(lambda: all(at(s) > 0 for s in sims), "work at both")
        for r in nodes:
            wait_for(lambda: r is nodes[0] or r.admin("GET", "/poison").json, "the suspect at another router")
            got = self.client(r).post(COMPLETIONS, POISON)
            self.assertEqual(got.status, 502)
        results = load.stop()
        self.left(sims, 1)
        self.assertLess(load.slowest, LIMIT)
        # The cut answers had begun at the engine that died.
        lives = [s.name for s in sims if s.running()]
        cut_at = {e["replica"] for r in nodes for e in r.events("upstream_failed") if e["answering"]}
        self.assertFalse(cut_at & set(lives), results)


if __name__ == "__main__":
    unittest.main()
