"""The engine simulator reports where it publishes KV events, and returns token ids, as the real engines do.
tests/unit/engine-sim/kv_sockets_test.c reads the events."""

import re
import subprocess

from lib import LIMIT, binary
from test_engine_sim import TEXT, SimCase, chat, events

COMPLETIONS = "/v1/completions"
CHAT = "/v1/chat/completions"


class Sources(SimCase):
    def engine(self, form, *more):
        one = self.sim(*self.arguments, "--kv-events", form, *more)
        return one, self.client(one)

    def test_vllm_reports_an_endpoint_for_each_rank(self):
        one, c = self.engine("vllm-0.25", "--data-parallel", "2", "--data-parallel-start", "4",
                             "--kv-replay-port", "0", "--kv-topic", "kv-events", "--kv-kept", "7")
        said = one.out.decode()
        port, again = (int(p) for p in re.search(
            r"KV events at tcp://[\d.]+:(\d+), and again at tcp://[\d.]+:(\d+)", said).groups())
        rank = {"enable_kv_cache_events": True, "publisher": "zmq", "endpoint": "tcp://*:%d" % port,
                "replay_endpoint": "tcp://*:%d" % again, "buffer_steps": 7, "hwm": 100000,
                "max_queue_size": 100000, "topic": "kv-events"}
        self.assertEqual(c.ask("GET", "/kv_event_sources").json, {
            "4": rank, "5": dict(rank, endpoint="tcp://*:%d" % (port + 1),
                                 replay_endpoint="tcp://*:%d" % (again + 1))})

    def test_vllm_without_replays_or_events(self):
        c = self.engine("vllm-0.9")[1]
        self.assertIsNone(c.ask("GET", "/kv_event_sources").json["0"]["replay_endpoint"])
        self.assertEqual(self.c.ask("GET", "/kv_event_sources").status, 404)
        self.assertEqual(self.one.call("POST", "/sim/kv", {"drop": 1}), {"error": "not understood"})

    def test_sglang_reports_a_base_endpoint(self):
        for form, says_again in (("sglang-0.5", False), ("sglang-0.5.15", True)):
            one, c = self.engine(form, "--engine", "sglang", "--data-parallel", "3",
                                 "--kv-replay-port", "0")
            said = c.ask("GET", "/server_info").json["kv_events"]
            port = said.pop("endpoint_port_base")
            self.assertIn(":%d," % port, one.out.decode())
            self.assertEqual("replay_endpoint_port_base" in said, says_again)
            said.pop("replay_endpoint_port_base", None)
            self.assertEqual(said, {"publisher": "zmq", "endpoint_host": "*", "topic": "",
                                    "block_size": 16, "dp_size": 3})
            self.assertEqual(c.ask("GET", "/kv_event_sources").status, 404)

    def test_event_numbers_and_faults(self):
        one, c = self.engine("vllm-0.24", "--data-parallel", "2")
        def numbers():
            return one.call("GET", "/sim/stats")["kv_numbers"]
        def ask(rank):
            c.post(CHAT, chat(TEXT, max_tokens=1), [("X-data-parallel-rank", str(rank))])
        self.assertEqual(numbers(), [0, 0])
        ask(1)
        first = numbers()[1]
        self.assertGreater(first, 0)
        self.assertEqual(numbers()[0], 0)
        self.assertEqual(one.call("POST", "/sim/kv", {"rank": 1, "forget": True, "number": 100}),
                         {"ok": True})
        self.assertEqual(numbers(), [0, 100])
        ask(1)  # and computes all again
        self.assertEqual(numbers(), [0, 100 + first])
        self.assertEqual(one.call("POST", "/sim/kv", {"rank": 2}), {"error": "not understood"})
        one.call("POST", "/sim/restart")
        self.assertEqual(numbers(), [0, 0])

    def test_a_cache_clear_is_published_as_each_engine_does(self):
        """SGLang publishes at once that its cache is empty, vLLM with the next computed blocks."""
        for form, engine, path, begins in (("sglang-0.5.15", "sglang", "/flush_cache", 1),
                                           ("vllm-0.25", "vllm", "/reset_prefix_cache", 0)):
            one, c = self.engine(form, "--engine", engine)
            def number():
                return one.call("GET", "/sim/stats")["kv_numbers"][0]
            self.assertEqual(number(), begins)
            c.post(CHAT, chat(TEXT, max_tokens=1))
            before = number()
            self.assertEqual(c.ask("POST", path).status, 200)
            self.assertEqual(number(), before + begins)
            one.call("POST", "/sim/restart")
            self.assertEqual(number(), begins)
        one.call("POST", "/sim/kv", {"forget": True})
        c = self.client(one)
        c.post(CHAT, chat(TEXT, max_tokens=1))
        before = number()
        c.ask("POST", "/sleep")
        self.assertEqual(number(), before)
        c.ask("POST", "/wake_up")
        self.assertEqual(number(), before + 1)

    def test_contradictory_options_are_refused(self):
        for arguments in (["--kv-events", "vllm-9"], ["--kv-events", "sglang-0.5"],
                          ["--kv-events", "vllm-0.25", "--kv-events-port", "none"],
                          ["--kv-events", "vllm-0.25", "--kv-events-port", "65536"],
                          ["--kv-events", "vllm-0.25", "--kv-kept", "10000000"]):
            r = subprocess.run([binary("tests/engine-sim")] + arguments, capture_output=True,
                               timeout=LIMIT)
            self.assertEqual((r.returncode, r.stderr.count(b"\n")), (2, 1), arguments)


class TokenIds(SimCase):
    def test_token_ids_of_a_whole_answer(self):
        prompt = list(range(100, 140))
        ask = {"prompt": prompt, "max_tokens": 3, "return_token_ids": True}
        choice = self.c.post(COMPLETIONS, ask).json["choices"][0]
        self.assertEqual(choice["prompt_token_ids"], prompt)
        self.assertEqual(len(choice["token_ids"]), 3)
        r = self.c.post(CHAT, chat(TEXT, max_tokens=3, return_token_ids=True)).json
        self.assertEqual(len(r["prompt_token_ids"]), r["usage"]["prompt_tokens"])
        self.assertEqual(len(r["choices"][0]["token_ids"]), 3)
        again = prompt + choice["token_ids"]  # a turn later they are the prompt's
        self.assertEqual(self.c.post(COMPLETIONS, dict(ask, prompt=again)).json["choices"][0]
                         ["prompt_token_ids"], again)

    def test_token_ids_of_a_stream(self):
        for path, ask in ((CHAT, chat(TEXT)), (COMPLETIONS, {"prompt": TEXT})):
            ask.update(max_tokens=4, return_token_ids=True)
            whole = self.c.post(path, ask).json
            got = [e for _, e in events(self.c.post(path, dict(ask, stream=True)).body)
                   if e != "[DONE]" and e["choices"]]
            holder = (lambda e: e) if path == CHAT else (lambda e: e["choices"][0])
            self.assertEqual(holder(got[0])["prompt_token_ids"], holder(whole)["prompt_token_ids"])
            for later in got[1:]:  # none, where all tokens came at once
                self.assertIsNone(holder(later).get("prompt_token_ids"))
            ids = [i for e in got for i in e["choices"][0].get("token_ids") or []]
            self.assertEqual(ids, whole["choices"][0]["token_ids"])
