"""Replicas that hang: requests stuck there move to other replicas, and clients hardly wait."""

import json
import re
import signal
import threading
import time
import unittest

from lib import LIMIT, Case, Client, answer, pace, wait_for
from lib_cluster import gvctl

CHAT = "/v1/chat/completions"


def body(i, stream=True, tokens=8):
    return json.dumps({"model": "sim", "stream": stream, "max_tokens": tokens, "ignore_eos": True,
                       "messages": [{"role": "user", "content": "question %d" % i}]}).encode()


class Load:
    """Requests at a rate, each on a connection of its own; how long each took and how it ended."""

    def __init__(self, router, rate, stream=False):
        self.router, self.rate, self.stream = router, rate, stream
        self.results = []
        self.threads = []
        self.stopping = threading.Event()
        self.pacer = threading.Thread(target=self._pace, daemon=True)
        self.pacer.start()

    def _one(self, i):
        began = time.monotonic()
        try:
            c = Client(self.router.port)
            try:
                status = c.ask("POST", CHAT, body(i, self.stream),
                               [("Content-Type", "application/json")]).status
            finally:
                c.close()
        except Exception as error:  # a cut counts as much as a status
            status = repr(error)
        self.results.append((status, time.monotonic() - began, began))

    def _pace(self):
        at, i = time.monotonic(), 0
        while not self.stopping.is_set():
            t = threading.Thread(target=self._one, args=(i,), daemon=True)
            t.start()
            self.threads.append(t)
            i += 1
            at += 1 / self.rate
            pace(at - time.monotonic())

    def stop(self):
        self.stopping.set()
        self.pacer.join()
        for t in self.threads:
            t.join(30)
        return self.results


class Watchdog(Case):
    def fleet(self, n, *args):
        sims = [self.sim("--model", "sim") for _ in range(n)]
        r = self.router([s.url for s in sims], "--policy", "round_robin", *args)
        r.wait_listed(n)
        return sims, r

    def judge(self, results):
        self.assertEqual([x for x in results if x[0] != 200], [])
        self.assertLess(max(x[1] for x in results), LIMIT)

    def more(self, load, n=30):
        before = len(load.results)
        wait_for(lambda: len(load.results) >= before + n, "more answers")

    def hang(self, start, end):
        sims, r = self.fleet(4)
        load = Load(r, 30)
        self.more(load)
        start(sims[0])
        stalled = r.wait_event("replica_stalled")
        self.assertEqual(stalled["replica"], sims[0].name)
        self.more(load)
        end(sims[0])
        results = load.stop()
        self.judge(results)
        self.assertEqual(r.metric('replica_stalls_total{replica="%s"}' % sims[0].name), 1)
        return sims, r

    def test_a_stopped_process_is_noticed(self):
        """SIGSTOP: the kernel accepts connections, and no answer comes."""
        sims, r = self.hang(lambda s: s.signal(signal.SIGSTOP), lambda s: s.signal(signal.SIGCONT))
        self.assertEqual(r.events("replica_stalled")[0]["sign"], "silent")
        r.wait_event("replica_stall_over")

    def test_a_hung_engine_loop_behind_a_live_server_is_noticed(self):
        """Health and metrics are fine; no token is computed."""
        sims, r = self.hang(lambda s: s.call("POST", "/sim/fail", {"mode": "stuck"}),
                            lambda s: s.call("POST", "/sim/fail", {"mode": "none"}))
        # Its gauges stop as well: the later requests may seem lost.
        self.assertIn(r.events("replica_stalled")[0]["sign"], ("counters", "starved"))
        r.wait_event("replica_stall_over")

    def test_a_hang_before_this_routers_first_token_is_noticed(self):
        """The engine's counters show tokens for other clients, so it is not compiling, which could take half a
        minute."""
        sims = [self.sim("--model", "sim") for _ in range(3)]
        for s in sims:
            self.assertEqual(self.client(s).ask("POST", CHAT, body(0, False),
                                                [("Content-Type", "application/json")]).status, 200)
        sims[0].call("POST", "/sim/fail", {"mode": "stuck"})
        r = self.router([s.url for s in sims], "--policy", "round_robin")
        r.wait_listed(3)
        load = Load(r, 30)
        r.wait_event("replica_stalled")
        self.judge(load.stop())


METRICS = """vllm:num_requests_running{engine="0",model_name="m"} %d
vllm:num_requests_waiting{engine="0",model_name="m"} 0
vllm:prompt_tokens_total{engine="0",model_name="m"} 100
vllm:generation_tokens_total{engine="0",model_name="m"} 100
vllm:engine_sleep_state{engine="0",model_name="m",sleep_state="awake"} %d
vllm:engine_sleep_state{engine="0",model_name="m",sleep_state="weights_offloaded"} %d
"""


class Scripted(Case):
    """Engines whose answers to probes are a script."""

    def ask(self, r, results, i=0):
        def one():
            c = self.client(r)
            began = time.monotonic()
            results.append((c.ask("POST", CHAT, json.dumps(
                {"model": "m", "messages": [{"role": "user", "content": "hi %d" % i}]}).encode(),
                [("Content-Type", "application/json")]).status, time.monotonic() - began))
        t = threading.Thread(target=one, daemon=True)
        t.start()
        return t

    def pair(self, *args, metrics=None):
        """`metrics`: what /metrics says of an engine, from the first time that it is asked."""
        sick, well = self.engine(), self.engine()
        for e in (sick, well) if metrics else ():
            e.probes["/metrics"] = lambda a, e=e: a.send(
                answer(200, (METRICS % metrics(e is sick)).encode()))
        r = self.router([sick, well], "--policy", "round_robin", "--scrape-interval", "200ms", *args)
        return sick, well, r

    def test_a_failed_health_check_takes_a_replica_out_at_once(self):
        sick, well, r = self.pair("--health-failures", "100")
        sick.probes["/health"] = lambda a: a.send(answer(503, b""))
        self.assertEqual(r.wait_event("replica_leaving")["status"], 503)
        for i in range(6):
            self.assertEqual(self.client(r).ask("POST", CHAT, b"{}").status, 200)
        self.assertEqual(sick.requests, [])
        self.assertEqual(r.metric('replica_leaving{replica="%s"}' % sick.name), 1)
        shown = [k for k in r.admin("GET", "/replicas").json if k["name"] == sick.name]
        self.assertEqual([(k["leaving"], k["avoided"], k["why"]) for k in shown],
                         [(True, True, "leaving")])
        _, out, _ = gvctl("replicas", admin=r.admin_port)
        self.assertRegex(out, re.escape(sick.name) + r" +avoided +leaving:503 ")
        del sick.probes["/health"]
        r.wait_event("replica_stays")
        for i in range(4):
            self.client(r).ask("POST", CHAT, b"{}")
        self.assertGreater(len(sick.requests), 0)

    def test_a_draining_sglang_is_noticed_by_ping_and_finishes_its_requests(self):
        """SGLang's health check takes a second, so the router makes it rarely; /ping answers 503 at once."""
        sick, well = self.engine(), self.engine()
        for e in (sick, well):
            e.probes["/ping"] = lambda a: a.send(answer(200, b""))
        r = self.router([e.url + "#engine=sglang" for e in (sick, well)], "--policy", "round_robin",
                        "--health-interval", "60s", "--health-failures", "1", "--watchdog", "0")
        r.wait_listed(2)
        release = threading.Event()

        def slow(asked):
            asked.read_body()
            release.wait(10)
            asked.send(answer(200, b"ok"))
        sick.handler = slow
        results = []
        threads = [self.ask(r, results, i) for i in range(2)]
        sick.wait_request()
        asked = []
        sick.probes["/ping"] = sick.probes["/health"] = lambda a: (asked.append(a), a.send(answer(503, b"")))
        r.wait_event("replica_leaving")
        for i in range(4):
            self.assertEqual(self.client(r).ask("POST", CHAT, b"{}").status, 200)
        self.assertEqual(len(sick.requests), 1)
        r.wait_event("replica_down")  # its health check says no as well; it still has a request
        before = len(asked)
        wait_for(lambda: len(asked) > before + 2, "further probes")
        release.set()
        for t in threads:
            t.join(10)
        self.assertEqual([s for s, _ in results], [200, 200])
        self.assertEqual((len(sick.requests), len(well.requests)), (1, 5))

    def test_health_path_and_statuses_are_configurable(self):
        a, b = self.engine(), self.engine()
        for e, path in ((a, "/ready"), (b, "/livez")):
            e.probes["/health"] = lambda asked: asked.send(answer(500, b""))
            e.probes[path] = lambda asked: asked.send(answer(429, b""))
        r = self.router([a, b.url + "#health=/livez"], "--health-path", "/ready",
                        "--health-statuses", "200..299,429", wait_up=False)
        r.wait_listed(2)
        self.assertEqual(r.events("replica_down"), [])


class AllDown(Case):
    def test_an_outage_ends_within_a_second(self):
        """With when-all-down refuse, only probes notice the recovery. They are frequent then, however rare they are
        for replicas that are up."""
        e = self.engine()
        r = self.router([e], "--health-interval", "60s", "--when-all-down", "refuse")
        e.refuse()
        for _ in range(5):
            self.client(r).ask("POST", CHAT, b"{}")
        r.wait_event("replica_down")
        wait_for(lambda: self.client(r).ask("POST", CHAT, b"{}").status == 503, "known to be down")
        back = self.engine(port=e.port)
        wait_for(lambda: self.client(r).ask("POST", CHAT, b"{}").status == 200, "an answer")
        self.assertGreater(len(back.requests), 0)


if __name__ == "__main__":
    unittest.main()
