"""Replicas of one model whose contexts differ in length: a long request goes to a replica that it fits, a request
refused as too long is retried at a longer one, and operators see why."""

import json
import unittest

from lib import HOST, answer_json, wait_for
from lib_cluster import Clustered, gvctl
from test_engines import CHAT, FAST, message, words

SHORT, LONG = 4096, 131072


def chat(seed, n, **more):
    return dict({"model": "sim", "max_tokens": 4, "messages": [message("user", words(seed, n))]}, **more)


def known(router):
    wait_for(lambda: all(k["context_tokens"] and k["health"] == "up" for k in router.admin("GET", "/replicas").json),
             "the contexts")


class Lengths(Clustered):
    """Simulated engines, one of them with a short context."""

    def fleet(self, *args):
        return [self.sim(*FAST, "--max-model-len", str(n), *args) for n in (SHORT, LONG, LONG)]

    def told(self, routers):
        for r in routers:
            wait_for(lambda: sorted(k["context_tokens"] or 0 for k in r.admin("GET", "/replicas").json)
                     == [SHORT, LONG, LONG], "the contexts")

    def all_served(self, routers, short):
        clients = [self.client(r) for r in routers]
        for i in range(36):
            n = (200, 900, 2500, 6000)[i % 4]  # words of two or three tokens
            got = clients[i % len(clients)].post(CHAT, chat(i, n, stream=i % 8 < 4))
            self.assertEqual(got.status, 200, (i, n, got))
            self.assertNotIn(b'"error"', got.body)
        self.assertIn(short.name, {clients[0].post(CHAT, chat(100 + i, 20)).get("x-grapevine-replica")
                                   for i in range(20)})

    def test_long_prompts_are_served(self):
        engines = self.fleet()
        r = self.router([e.url for e in engines], "--policy", "round_robin")
        self.told([r])
        self.all_served([r], engines[0])
        got = self.client(r).post(CHAT, chat(1, 20, max_tokens=8000))  # long because of its answer
        self.assertEqual(got.status, 200, got)
        self.assertEqual([m["max_model_len"] for m in r.get("/v1/models").json["data"]], [LONG])
        self.assertEqual(r.get("/v1/models/sim").json["max_model_len"], LONG)
        r.quiet()

    def test_long_prompts_of_sglang(self):
        engines = self.fleet("--engine", "sglang")
        r = self.router([e.url for e in engines], "--policy", "round_robin")
        self.told([r])
        self.all_served([r], engines[0])

    def test_three_routers_serve_long_prompts(self):
        engines = self.fleet()
        nodes = self.cluster(3, engines, "--policy", "round_robin")
        self.told(nodes)
        self.all_served(nodes, engines[0])

    def test_operators_see_context_lengths(self):
        engines = self.fleet()
        r = self.router([e.url for e in engines])
        self.told([r])
        why = {}
        for n, text in ((20000, "is too short"), (3000, "may be too short")):
            got = r.admin("POST", "/explain", json.dumps(chat(1, n)).encode())
            why = {k["replica"]: k["why"] for k in got.json["left_out"]}
            self.assertEqual(why, {engines[0].name: "its context of 4096 tokens " + text})
        out = gvctl("explain", "-", stdin=json.dumps(chat(1, 3000)).encode(), admin=r.admin_port)[1]
        self.assertIn("its context of 4096 tokens may be too short", out)
        self.assertRegex(out, r"\d+ to \d+ tokens\. Some replicas' contexts may be too short\.\n")
        table = gvctl("replicas", "-o", "wide", admin=r.admin_port)[1].splitlines()
        column = table[0].replace("QUEUE s", "QUEUE").split().index("CONTEXT")
        self.assertEqual(sorted(int(line.split()[column]) for line in table[1:4]), [SHORT, LONG, LONG])
        self.assertEqual(r.metrics()['grapevine_replica_context_length{replica="%s"}' % engines[0].name], SHORT)

    def test_a_prompt_too_long_for_all_gets_the_engines_error(self):
        engines = [self.sim(*FAST, "--max-model-len", str(n)) for n in (1000, 2000)]
        r = self.router([e.url for e in engines], "--policy", "round_robin")
        known(r)
        c = self.client(r)
        for i in range(6):
            got = c.post(CHAT, chat(i, 4000))
            self.assertEqual(got.status, 400, got)
            self.assertIn("maximum context length is 2000 tokens", got.json["error"]["message"])
        self.assertEqual(r.metric('retries_total{reason="context"}'), 0)
        out = gvctl("explain", "-", stdin=json.dumps(chat(1, 20000)).encode(), admin=r.admin_port)[1]
        self.assertRegex(out, r"\d+ to \d+ tokens\. No replica's context is long enough: the engine will refuse it\.\n")

    def test_a_label_sets_the_context_length(self):
        a, b = self.sim(*FAST), self.sim(*FAST)
        r = self.router([a.url + "#context=4096", b.url], "--policy", "round_robin")
        wait_for(lambda: [k["context_tokens"] for k in r.admin("GET", "/replicas").json] == [4096, LONG]
                 or [k["context_tokens"] for k in r.admin("GET", "/replicas").json] == [LONG, 4096], "the label")
        c = self.client(r)
        for i in range(6):
            self.assertEqual(c.post(CHAT, chat(i, 8000)).get("x-grapevine-replica"), b.name)


VLLM = {"error": {"message": "This model's maximum context length is 4096 tokens. However, your prompt contains at "
                             "least 4097 input tokens.", "type": "BadRequestError", "param": "input_tokens",
                  "code": 400}}
SGLANG = {"object": "error", "message": "The input (54011 tokens) is longer than the model's context length (4096 "
                                        "tokens).", "type": "BadRequestError", "param": None, "code": 400}
ANTHROPIC = {"type": "error", "error": {"type": "BadRequestError", "message": SGLANG["message"]}}
NATIVE = {"error": {"message": SGLANG["message"]}}
CODE = {"error": {"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded"}}


class Refused(Clustered):
    """Errors beyond the estimate: the replica with the shorter context refuses, in the words of each engine and API."""

    def engines(self, said, status=400):
        """The short engine refuses all requests; the long engine serves all."""
        short, long = self.engine(), self.engine()
        for e, n in ((short, SHORT), (long, LONG)):
            e.probes["/v1/models"] = lambda asked, n=n: asked.send(answer_json(
                {"object": "list", "data": [{"id": "m", "owned_by": "vllm", "max_model_len": n}]}))
        short.replies(answer_json(said, status))
        long.replies(answer_json({"choices": [], "usage": {"prompt_tokens": 5000, "completion_tokens": 1}}))
        return short, long

    def asked(self, routers, path, body, count=6):
        for i in range(count):
            got = self.client(routers[i % len(routers)]).post(path, body)
            self.assertEqual(got.status, 200, (path, got))

    def ask_both(self, routers, path, body, short, long):
        """Asks until the short engine got a request too: on a busy machine the router may avoid that engine for a
        while."""
        asked = 0
        while asked == 0 or not short.requests:
            self.assertLess(asked, 600, "the short one was never asked")
            self.asked(routers, path, body)
            asked += 6
        self.assertEqual(len(long.requests), asked)

    def test_each_apis_refusal_is_retried_at_the_longer_replica(self):
        chat_body = {"model": "m", "messages": [message("user", "x")], "max_tokens": 1}
        for said, path, body in (
                (VLLM, CHAT, chat_body), (VLLM, CHAT, dict(chat_body, stream=True)),
                (SGLANG, CHAT, chat_body), (CODE, CHAT, chat_body),
                (VLLM, "/v1/completions", {"model": "m", "prompt": "x"}),
                (VLLM, "/v1/responses", {"model": "m", "input": "x"}),
                (ANTHROPIC, "/v1/messages", chat_body),
                (NATIVE, "/generate", {"text": "x"}),
                (VLLM, "/v1/embeddings", {"model": "m", "input": "x"})):
            with self.subTest(path=path, said=said):
                short, long = self.engines(said)
                r = self.router([short, long], "--policy", "round_robin")
                known(r)
                self.ask_both([r], path, body, short, long)
                self.assertEqual(r.metric('retries_total{reason="context"}'), len(short.requests))
                r.stop()

    def test_three_routers_retry_at_the_longer_replica(self):
        short, long = self.engines(VLLM)
        nodes = self.cluster(3, [short, long], "--policy", "round_robin")
        for r in nodes:
            known(r)
        self.ask_both(nodes, CHAT, {"model": "m", "messages": [message("user", "x")]}, short, long)

    def test_a_replica_restarted_with_a_longer_context_is_used(self):
        """The restart is too quick to be noticed. A refusal by the longest replica makes the router read the model
        lists again."""
        short, long = self.engines(VLLM)
        lengths = {short: 1000, long: SHORT}
        for e in lengths:
            e.probes["/v1/models"] = lambda asked, e=e: asked.send(answer_json(
                {"object": "list", "data": [{"id": "m", "owned_by": "vllm", "max_model_len": lengths[e]}]}))
        short.replies(answer_json({"choices": [], "usage": {"prompt_tokens": 5000, "completion_tokens": 1}}))
        long.replies(answer_json(VLLM, 400))
        r = self.router([short, long], "--policy", "round_robin")
        known(r)
        body = {"model": "m", "messages": [message("user", words(1, 20))], "max_tokens": 9000}
        got = self.client(r).post(CHAT, body)
        self.assertEqual((got.status, got.json), (400, VLLM), got)
        lengths[short] = LONG
        for _ in range(3):
            got = self.client(r).post(CHAT, body)
            self.assertEqual((got.status, got.get("x-grapevine-replica")), (200, short.name), got)
        self.assertEqual((len(long.requests), r.metric('retries_total{reason="context"}')), (2, 1))

    def test_other_400s_pass_to_the_client(self):
        short, long = self.engines({"error": {"message": "temperature must be non-negative", "code": 400}})
        long.replies(answer_json({"error": {"message": "temperature must be non-negative", "code": 400}}, 400))
        r = self.router([short, long], "--policy", "round_robin")
        for _ in range(4):
            self.assertEqual(self.client(r).post(CHAT, {"model": "m", "messages": []}).status, 400)
        self.assertEqual(r.metric('retries_total{reason="context"}'), 0)

    def test_the_refusal_passes_if_the_longer_replica_is_down(self):
        short, long = self.engines(VLLM)
        r = self.router([short, long], "--policy", "round_robin")
        long.stop()
        r.wait_event("replica_down")
        got = self.client(r).post(CHAT, {"model": "m", "messages": []})
        self.assertEqual((got.status, got.get("retry-after")), (503, "1"), got)
        r2 = self.router([short, long], "--when-all-down", "refuse", wait_up=False)
        wait_for(lambda: short.name in {e["replica"] for e in r2.events("replica_up")}, "the short one")
        self.assertEqual(self.client(r2).post(CHAT, {"model": "m", "messages": []}).status, 400)  # the other's
        # context is unknown


if __name__ == "__main__":
    unittest.main()
