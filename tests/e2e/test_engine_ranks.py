"""The engine simulator with data-parallel ranks: many caches behind one address, as vLLM and SGLang
have them."""

import json
import subprocess

from lib import LIMIT, Case, binary, request, wait_for
from test_engine_sim import JSON, TEXT, chat, events

HEADER = "X-Data-Parallel-Rank"
CHAT = "/v1/chat/completions"
MESSAGES = {"model": "tiny", "max_tokens": 2, "messages": [{"role": "user", "content": TEXT}]}
ANSWERS = {CHAT: chat(TEXT, max_tokens=2),
           "/v1/completions": {"model": "tiny", "prompt": TEXT, "max_tokens": 2},
           "/v1/messages": MESSAGES,
           "/v1/responses": {"model": "tiny", "input": TEXT, "max_output_tokens": 2},
           "/generate": {"text": TEXT, "sampling_params": {"max_new_tokens": 2}}}


class Ranks(Case):
    more = ()

    def setUp(self):
        super().setUp()
        self.one = self.sim("--model", "tiny", "--block-tokens", "16", "--speed-up", "20",
                            "--data-parallel", "3", *self.more)
        self.c = self.client(self.one)

    def stats(self):
        return self.one.call("GET", "/sim/stats")

    def requests(self):
        return [one["requests"] for one in self.stats()["ranks"]]

    def pinned(self, rank, path=CHAT, **more):
        return self.c.post(path, dict(ANSWERS[path], **more), [(HEADER, str(rank))])

    def stream(self, rank=None):
        """A client that reads a long answer."""
        body = json.dumps(chat(max_tokens=100000, stream=True)).encode()
        pin = [] if rank is None else [(HEADER, str(rank))]
        return self.client(self.one).send(request("POST", CHAT, body, [JSON] + pin))

    def rank_of(self, path=CHAT, header=None, **more):
        """The rank that serves the request."""
        r = self.c.post(path, dict(ANSWERS[path], **more),
                        [] if header is None else [(HEADER, str(header))])
        self.assertEqual(r.status, 200, r)
        return self.one.call("GET", "/sim/last")["rank"]

    def metrics(self):
        """{metric: {labels: value}}, labels as they are written."""
        out = {}
        for line in self.c.ask("GET", "/metrics").body.decode().splitlines():
            if not line.startswith("#"):
                series, value = line.rsplit(" ", 1)
                name, _, labels = series.partition("{")
                self.assertNotIn(labels, out.setdefault(name, {}), line)
                out[name][labels] = float(value)
        return out

    def by_rank(self, label, name):
        """A metric's values by a label's value."""
        return {labels.split(label + '="')[1].split('"')[0]: value
                for labels, value in self.metrics()[name].items()}


class Vllm(Ranks):
    def test_each_rank_has_its_cache(self):
        cached = [self.pinned(rank).json["usage"]["prompt_tokens_details"]["cached_tokens"]
                  for rank in (1, 2, 1, 0)]
        self.assertEqual((cached[0], cached[1], cached[3]), (0, 0, 0))
        self.assertGreater(cached[2], 100)
        self.assertEqual(self.requests(), [1, 2, 1])
        stats = self.stats()
        self.assertEqual(stats["requests"], 4)
        self.assertEqual([one["cached_tokens"] for one in stats["ranks"]], [0, cached[2], 0])
        self.assertEqual(stats["cached_tokens"], cached[2])

    def test_the_header_pins_a_rank(self):
        for path in (CHAT, "/v1/completions", "/v1/messages"):
            self.assertEqual([self.rank_of(path, n) for n in (2, 0, 1)], [2, 0, 1], path)
        self.assertEqual(self.c.post(CHAT, chat(), [(HEADER.lower(), "2")]).status, 200)
        self.assertEqual(self.one.call("GET", "/sim/last")["rank"], 2)
        self.assertEqual(self.rank_of("/v1/responses", 2), 0)  # vLLM ignores the header on this path

    def test_invalid_ranks(self):
        for rank in (3, -1):
            self.assertEqual(self.rank_of(header=1), 1)
            r = self.pinned(rank)
            text = "data_parallel_rank %d is out of range [0, 3)." % rank
            self.assertEqual((r.status, r.json), (400, {"error": {
                "message": text, "type": "BadRequestError", "param": None, "code": 400}}))
            self.assertIsNone(self.one.call("GET", "/sim/last")["rank"])
            r = self.pinned(rank, "/v1/messages")
            self.assertEqual((r.status, r.json["error"]["message"]), (400, text))
        self.assertEqual(self.rank_of(header="abc"), 0)
        self.assertEqual(self.rank_of(routed_dp_rank=2), 0)

    def test_the_rank_with_the_fewest_requests_is_chosen(self):
        """vLLM chooses by load, not by cache; of idle ranks the first."""
        self.pinned(2)
        self.assertEqual(self.rank_of(), 0)
        long = []
        for n in range(3):
            long.append(self.stream(rank=0 if n == 0 else None))
            wait_for(lambda n=n: self.stats()["running"] == n + 1, "a request that runs")
        self.assertEqual([one["running"] for one in self.stats()["ranks"]], [1, 1, 1])
        long[1].close()
        wait_for(lambda: self.stats()["running"] == 2, "its end")
        self.assertEqual(self.rank_of(), 1)
        self.assertEqual([one["aborted"] for one in self.stats()["ranks"]], [0, 1, 0])

    def test_metrics_of_each_engine(self):
        for rank in (1, 1, 2):
            self.assertEqual(self.pinned(rank).status, 200)
        tokens = self.stats()["ranks"]
        for name, wanted in (("vllm:prefix_cache_hits_total", [x["cached_tokens"] for x in tokens]),
                             ("vllm:prompt_tokens_total", [x["prompt_tokens"] for x in tokens]),
                             ("vllm:num_requests_running", [0, 0, 0]),
                             ("vllm:time_to_first_token_seconds_count", [0, 2, 1]),
                             ("vllm:cache_config_info", [1, 1, 1])):
            self.assertEqual(self.by_rank("engine", name),
                             {"0": wanted[0], "1": wanted[1], "2": wanted[2]}, name)
        found = self.metrics()
        self.assertEqual(len(found["vllm:request_success_total"]), 9)
        self.assertEqual(list(found["vllm:admission_rejections_total"]),
                         ['model_name="tiny",reason="max_num_queued_reqs"}'])

    def test_all_ranks_are_one_process(self):
        self.pinned(1)
        self.assertEqual(self.one.call("POST", "/sim/restart"), {"ok": True})
        self.assertEqual(self.requests(), [0, 0, 0])
        self.c = self.client(self.one)
        usage = self.pinned(1).json["usage"]
        self.assertEqual(usage["prompt_tokens_details"]["cached_tokens"], 0)
        long = [self.stream(rank) for rank in range(3)]
        wait_for(lambda: self.stats()["running"] == 3, "requests that run")
        self.one.call("POST", "/sim/fail", {"mode": "die"})
        for c in long:
            self.assertIn("error", events(c.read().body)[-2][1])


class Hybrid(Ranks):
    more = ("--data-parallel-start", "4")

    def test_metrics_use_global_ranks_and_the_header_local_ones(self):
        """The header has the rank's index in this node, the metrics its index in the whole deployment."""
        self.assertEqual(self.rank_of(header=2), 2)
        self.assertEqual(self.by_rank("engine", "vllm:generation_tokens_total"),
                         {"4": 0, "5": 0, "6": 2})
        self.assertEqual(list(self.by_rank("engine", "vllm:cache_config_info")), ["4", "5", "6"])
        self.assertEqual(self.pinned(4).json["error"]["message"],
                         "data_parallel_rank 4 is out of range [0, 3).")


class Sglang(Ranks):
    more = ("--engine", "sglang")

    def test_round_robin(self):
        self.assertEqual([self.rank_of() for _ in range(4)], [0, 1, 2, 0])
        self.assertEqual(self.rank_of(header=0), 0)
        self.assertEqual(self.rank_of(), 1)

    def test_header_and_body_pin_a_rank(self):
        for path in (CHAT, "/v1/completions", "/v1/messages", "/v1/responses"):
            self.assertEqual([self.rank_of(path, n) for n in (2, 0, 1)], [2, 0, 1], path)
        for path in (CHAT, "/v1/completions", "/generate"):
            self.assertEqual(self.rank_of(path, routed_dp_rank=2), 2, path)
            self.assertEqual(self.rank_of(path, data_parallel_rank=1), 1, path)
            self.assertEqual(self.rank_of(path, data_parallel_rank=1, routed_dp_rank=0), 0, path)
        self.assertEqual(self.rank_of(header=1, routed_dp_rank=2), 1)
        r = self.c.post("/generate", dict(ANSWERS["/generate"], routed_dp_rank=2))
        self.assertEqual(r.json["meta_info"]["dp_rank"], 2)
        self.assertEqual([self.rank_of("/generate", header=2) for _ in range(2)], [0, 1])

    def test_invalid_ranks(self):
        def flat(message, type):
            return {"object": "error", "message": message, "type": type, "param": None, "code": 400}
        text = "routed_dp_rank=3 out of range [0, 3)"
        for r in (self.pinned(3), self.c.post(CHAT, chat(routed_dp_rank=3)),
                  self.pinned(3, stream=True), self.pinned(3, routed_dp_rank=1)):
            self.assertEqual((r.status, r.json), (400, flat(text, "BadRequestError")))
        r = self.pinned("abc")
        self.assertEqual((r.status, r.json), (400, flat(
            "Invalid X-Data-Parallel-Rank header: must be an integer, got 'abc'", "400")))
        r = self.pinned(-1)
        self.assertEqual(r.json["message"], "routed_dp_rank=-1 out of range [0, 3)")
        r = self.c.post("/generate", {"text": "a", "routed_dp_rank": 3})
        self.assertEqual((r.status, r.json), (400, {"error": {"message": text}}))

    def test_metrics_of_schedulers(self):
        for rank in (1, 1, 2):
            self.assertEqual(self.pinned(rank).status, 200)
        self.stream(rank=2)
        wait_for(lambda: self.stats()["running"] == 1, "a request that runs")
        self.assertEqual(self.by_rank("dp_rank", "sglang:num_running_reqs"),
                         {"0": 0, "1": 0, "2": 1})
        self.assertEqual(self.by_rank("dp_rank", "sglang:max_total_num_tokens"),
                         {"0": 400000, "1": 400000, "2": 400000})
        cached = self.metrics()["sglang:cached_tokens_total"]
        self.assertEqual(list(cached.values()), [self.stats()["cached_tokens"]])
        self.assertNotIn("dp_rank", str(cached))

    def test_server_info(self):
        info = self.c.ask("GET", "/server_info").json
        self.assertEqual((info["dp_size"], len(info["internal_states"])), (3, 3))


class One(Case):
    """An engine with one rank says nothing of ranks."""

    def test_no_answer_mentions_ranks(self):
        for engine, label in (("vllm", 'engine="0"'), ("sglang", 'engine_type="unified"')):
            one = self.sim("--model", "tiny", "--engine", engine)
            c = self.client(one)
            self.assertEqual(c.post(CHAT, chat(), [(HEADER, "0")]).status, 200)
            self.assertEqual(c.post(CHAT, chat(), [(HEADER, "1")]).status, 400)
            self.assertNotIn("ranks", one.call("GET", "/sim/stats"))
            self.assertNotIn("rank", one.call("GET", "/sim/last"))
            text = c.ask("GET", "/metrics").body.decode()
            self.assertIn(label, text)
            self.assertNotIn("dp_rank", text)

    def test_invalid_rank_options_are_refused(self):
        for words, why in ((["--data-parallel", "65"], "at most 64"),
                           (["--data-parallel", "0"], "not a valid N"),
                           (["--engine", "sglang", "--data-parallel-start", "1"], "needs")):
            done = subprocess.run([binary("tests/engine-sim")] + words, capture_output=True,
                                  text=True, timeout=LIMIT)
            self.assertEqual(done.returncode, 2)
            self.assertIn(why, done.stderr)
