"""A router's learned figures of its engines, and its reports. Virtual time tests the distribution of work
(tests/unit/replica/fleet_test.c, tests/unit/route/due_test.c): real engines are as slow as a busy machine."""

import json
import threading
import unittest

from lib import HOST, Case, answer, wait_for
from test_daemon import run
from test_engines import CHAT, message, words


ABSURD = """vllm:num_requests_running{{engine="0"}} {0}
vllm:num_requests_waiting{{engine="0"}} {0}
vllm:kv_cache_usage_perc{{engine="0"}} {0}
vllm:cache_config_info{{block_size="16",engine="0",num_gpu_blocks="{1}"}} 1.0
vllm:request_prefill_time_seconds_sum {2}
vllm:request_prefill_kv_computed_tokens_sum {2}
vllm:inter_token_latency_seconds_sum {3}
vllm:inter_token_latency_seconds_count {4}
"""


class Learning(Case):
    def test_absurd_metrics_keep_costs_finite(self):
        """Whatever an engine reports about itself, costs stay numbers: any other value ends the router."""
        cases = (("1e308", "9" * 19, "0", "%de-300", "%d000"), ("9e15", "9" * 15, "%de306", "%de300", "%de306"),
                 ("5e-324", "9" * 19, "%de-300", "%d", "%d"))
        for case in cases:
            engine, reads = self.engine(models=("m",)), []

            def metrics(asked, case=case, reads=reads):
                reads.append(asked)
                asked.send(answer(200, ABSURD.format(*[c.replace("%d", str(len(reads))) for c in case]).encode()))
            engine.probes["/metrics"] = metrics
            router = self.router([engine], "--scrape-interval", "100ms")
            wait_for(lambda reads=reads: len(reads) > 4, "some reads")
            c = self.client(router)
            for n in range(12):
                got = c.post(CHAT, {"model": "m", "messages": [message("user", words(str(n), 300))]})
                self.assertEqual(got.status, 200, (case, got))
            router.stop()

    def test_explain_shows_a_slow_replicas_due_share(self):
        """One client keeps the fast replica busy. A new request would have to wait there, and the slow replica, which
        is free, has had less than its speed deserves."""
        fast, slow = self.sim("--speed-up", "4"), self.sim("--speed-up", "4", "--prefill-rate", "1000")
        router = self.router([fast.url, slow.url])
        router.wait_up(2)
        busy, over = threading.Event(), threading.Event()
        def keep_busy():
            requests = self.client(router)
            n = 0
            while not over.is_set():
                n += 1
                requests.post(CHAT, {"model": "sim", "max_tokens": 5, "stream": True,
                                     "messages": [message("user", words("busy %d" % n, 900))]})
                busy.set()
        client = threading.Thread(target=keep_busy)
        client.start()
        try:
            busy.wait()
            body = json.dumps({"model": "sim", "messages": [message("user", words("asked", 200))]}).encode()
            said = "%s is slow, but no request waits there" % slow.name
            wait_for(lambda: said in run("gvctl", "--admin", "http://%s:%d" % (HOST, router.admin_port), "explain",
                                         stdin=body)[1], "the sentence")
        finally:
            over.set()
            client.join()


if __name__ == "__main__":
    unittest.main()
