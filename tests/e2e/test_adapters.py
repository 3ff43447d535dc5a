"""LoRA adapters: routers keep each where it is loaded, and try an unlisted one at a replica marked as loading on
demand."""

import json
import random
import subprocess
import tempfile
import unittest

from lib import Case, binary, wait_for
from test_engines import CHAT, FAST, message, words

NAMES = ["ad-%d" % i for i in range(6)]
SLOTS = 2


def body(model, i):
    return {"model": model, "max_tokens": 2, "messages": [message("user", words(i, 30))]}


class Adapters(Case):
    def fleet(self, *args, count=3):
        listed = ("--max-loras", str(SLOTS), "--adapters", ",".join(NAMES))
        return [self.sim(*FAST, *listed, *args) for _ in range(count)]

    def ready(self, routers, model):
        for r in routers:
            wait_for(lambda: model in [m["id"] for m in r.get("/v1/models").json.get("data", [])],
                     "the adapters")

    def asked(self, routers, models):
        """Asks for each in turn, at a random router; all succeed."""
        clients = [self.client(r) for r in routers]
        chance = random.Random(1)
        for i, model in enumerate(models):
            got = chance.choice(clients).post(CHAT, body(model, i))
            self.assertEqual(got.status, 200, got)
        for c in clients:
            c.close()

    def loads(self, engines):
        return sum(e.call("GET", "/sim/stats")["adapter_loads"] for e in engines)

    def in_any_order(self, count):
        chance = random.Random(2)
        return [chance.choice(NAMES) for _ in range(count)]

    def test_adapters_stay_on_the_replica_that_loaded_them(self):
        engines = self.fleet()
        r = self.router([e.url for e in engines])
        self.ready([r], NAMES[0])
        self.asked([r], self.in_any_order(120))
        # each once is the least; wherever a slot is free (as many slots as adapters) some 80
        self.assertLessEqual(self.loads(engines), 2 * len(NAMES))

    def test_round_robin_reloads_adapters_again_and_again(self):
        """The control group: a policy that ignores where adapters are loaded."""
        engines = self.fleet()
        r = self.router([e.url for e in engines], "--policy", "round_robin")
        self.ready([r], NAMES[0])
        self.asked([r], self.in_any_order(120))
        self.assertGreater(self.loads(engines), 40)

    def test_explain_shows_the_cost_of_loading_an_adapter(self):
        engines = self.fleet(count=2)
        r = self.router([e.url for e in engines])
        self.ready([r], NAMES[0])
        self.asked([r], [NAMES[0]] * 3)
        holder = max(engines, key=lambda e: e.call("GET", "/sim/stats")["adapter_loads"]).name
        got = r.admin("POST", "/explain", json.dumps(body(NAMES[0], 9)).encode()).json
        self.assertTrue(got["adapter"])
        costs = {x["replica"]: x["adapter_s"] for x in got["replicas"]}
        self.assertEqual(costs.pop(holder), 0)
        self.assertGreater(min(costs.values()), 0)
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            json.dump(body(NAMES[0], 9), f)
            f.flush()
            told = subprocess.run([binary("gvctl"), "--admin", "http://127.0.0.1:%d" % r.admin_port,
                                   "explain", f.name], capture_output=True, text=True, check=True)
        self.assertIn("ADAPTER s", told.stdout)

    def test_unlisted_adapters_go_to_replicas_that_load_on_demand(self):
        plain = self.sim(*FAST)
        other = self.sim(*FAST, "--max-loras", str(SLOTS), "--adapters-on-demand")
        r = self.router([plain.url, other.url + "#adapters=on-demand"])
        self.ready([r], "sim")
        self.asked([r], ["unheard-of"] * 6)
        self.assertEqual(plain.call("GET", "/sim/stats")["requests"], 0)
        self.assertEqual(other.call("GET", "/sim/stats")["adapter_loads"], 1)

    def test_unlisted_adapters_get_404_if_no_replica_loads_on_demand(self):
        r = self.router([e.url for e in self.fleet(count=1)])
        self.ready([r], NAMES[0])
        c = self.client(r)
        self.assertEqual(c.post(CHAT, body("unheard-of", 0)).status, 404)
        c.close()


class Surface(Case):
    def test_vllm_lists_adapters_under_their_base_and_says_which_run(self):
        e = self.sim(*FAST, "--max-loras", "4", "--adapters", "one,two")
        listed = {m["id"]: m["parent"] for m in e.call("GET", "/v1/models")["data"]}
        self.assertEqual(listed, {"sim": None, "one": "sim", "two": "sim"})
        c = self.client(e)
        self.assertIn('vllm:lora_requests_info{max_lora="4",running_lora_adapters="",'
                      'waiting_lora_adapters=""}', c.ask("GET", "/metrics").body.decode())
        cached = lambda model: c.post(CHAT, {  # noqa: E731
            "model": model, "max_tokens": 1, "messages": [message("user", words("x", 200))]}).json[
                "usage"]["prompt_tokens_details"]["cached_tokens"]
        self.assertEqual(cached("one"), 0)
        self.assertEqual(cached("two"), 0)  # nothing is shared between adapters
        self.assertGreater(cached("one"), 0)
        self.assertEqual(e.call("GET", "/sim/stats")["adapter_loads"], 2)
        self.assertEqual(c.post(CHAT, body("three", 0)).status, 404)
        c.close()

    def test_sglang_takes_base_and_adapter(self):
        e = self.sim(*FAST, "--engine", "sglang", "--max-loras", "4", "--adapters", "one")
        c = self.client(e)
        self.assertEqual(c.post(CHAT, body("sim:one", 0)).status, 200)
        self.assertEqual(c.post(CHAT, body("sim:two", 0)).status, 400)
        self.assertIn("sglang:lora_pool_slots_total", c.ask("GET", "/metrics").body.decode())
        self.assertEqual(e.call("GET", "/sim/stats")["adapter_loads"], 1)
        c.close()


if __name__ == "__main__":
    unittest.main()
