"""The engine simulator is controlled like real engines: its cache is reset, it sleeps and wakes up."""

import json

from lib import request, wait_for
from test_engine_sim import JSON, TEXT, SimCase, chat


class Steering(SimCase):
    def cached(self):
        return self.c.post("/v1/chat/completions", chat(TEXT)).json["usage"]["prompt_tokens_details"]

    def test_a_reset_empties_the_cache(self):
        self.cached()
        self.assertGreater(self.cached()["cached_tokens"], 0)
        r = self.c.post("/reset_prefix_cache", {})
        self.assertEqual((r.status, r.json), (200, {"success": True}))
        self.assertEqual(self.stats()["cache_blocks_named"], 0)
        self.assertEqual(self.cached()["cached_tokens"], 0)
        self.fail_by("stuck")
        other = self.client(self.one)
        other.send(request("POST", "/v1/chat/completions", json.dumps(chat(TEXT)).encode(), [JSON]))
        wait_for(lambda: self.stats()["running"] == 1, "it runs")
        self.assertEqual(self.c.post("/reset_prefix_cache", {}).json, {"success": False})
        self.assertGreater(self.stats()["cache_blocks_named"], 0)
        self.assertEqual(self.c.ask("POST", "/flush_cache").status, 404)  # SGLang's

    def test_a_sleeping_engine_answers_no_request(self):
        self.cached()
        self.assertEqual(self.c.ask("GET", "/is_sleeping").json, {"is_sleeping": False})
        for level, state in (("", "weights_offloaded"), ("?level=2", "discard_all")):
            self.assertEqual(self.c.post("/sleep" + level, {}).status, 200)
            self.assertEqual(self.c.ask("GET", "/is_sleeping").json, {"is_sleeping": True})
            self.assertEqual(self.c.ask("GET", "/health").status, 200)
            self.assertEqual(self.stats()["cache_blocks_named"], 0)
            asleep = [k for k, v in self.metrics().items() if "sleep_state" in k and float(v) == 1]
            self.assertIn('sleep_state="%s"' % state, asleep[0])
            other = self.client(self.one)
            other.send(request("POST", "/v1/chat/completions", json.dumps(chat(TEXT)).encode(), [JSON]))
            wait_for(lambda: self.stats()["running"] + self.stats()["waiting"] == 1, "it waits")
            self.assertEqual(self.c.post("/wake_up", {}).status, 200)
            self.assertEqual(other.read().status, 200)
            self.assertEqual(self.c.ask("GET", "/is_sleeping").json, {"is_sleeping": False})

    def test_sglang_flushes(self):
        one = self.sim(*self.arguments, "--engine", "sglang")
        c = self.client(one)
        for method in ("GET", "POST"):
            c.post("/v1/chat/completions", chat(TEXT))
            self.assertGreater(one.call("GET", "/sim/stats")["cache_blocks_named"], 0)
            r = c.ask(method, "/flush_cache")
            self.assertEqual((r.status, r.body[:14]), (200, b"Cache flushed."))
            self.assertEqual(one.call("GET", "/sim/stats")["cache_blocks_named"], 0)
        self.assertEqual(c.post("/sleep", {}).status, 404)
