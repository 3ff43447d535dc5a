"""Requests that steer engines, sent to all replicas; and fields that no client may send to one."""

import json
import os
import tempfile
import unittest

from lib import Case, answer, answer_json, closed_port, wait_for
from lib_cluster import Clustered, gvctl

CHAT = "/v1/chat/completions"
LONG = "what all turns begin with, and what an engine keeps " * 400


def bearer(key):
    return [("Authorization", "Bearer " + key)]


def body(**more):
    return {"model": "m", "messages": [{"role": "user", "content": LONG}], **more}


def steered(engine, says=200, text=b"done"):
    """The engine answers chats, and control paths with the status `says`."""
    def handler(asked):
        asked.read_body()
        if asked.path == CHAT:
            asked.send(answer_json({"object": "chat.completion", "model": "m", "choices": [
                {"message": {"content": "hi"}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 5000, "completion_tokens": 1}}))
        else:
            asked.send(answer(says, text))
    engine.handler = handler
    return engine


def targets(engine):
    return [(a.method, a.target) for a in engine.requests if a.path != CHAT]


def held(router):
    """{replica: tokens of the prompt that it is believed to hold}."""
    got = router.admin("POST", "/explain", json.dumps(body()).encode())
    return {x["replica"]: x["cached_tokens"] for x in got.json["replicas"]}


class All(Clustered):
    def three(self, *args, **how):
        """Three routers and three engines, each of which holds the prompt as all routers know."""
        engines = [steered(self.engine(models=("m",))) for _ in range(3)]
        routers = [self.node("r1", engines, *args, **how)]
        seed = "127.0.0.1:%d" % routers[0].gossip_port
        routers += [self.node(n, engines, *args, join=seed, **how) for n in ("r2", "r3")]
        return engines, routers

    def warm(self, engines, routers, headers=()):
        for e in engines:
            rest = [o.name for o in engines if o is not e]
            for name in rest:
                routers[0].admin("POST", "/drain?replica=" + name, b"")
            self.assertEqual(self.client(routers[0]).post(CHAT, body(), headers=headers).status, 200)
            for name in rest:
                routers[0].admin("POST", "/undrain?replica=" + name, b"")
        # A router lists an engine once it has read that engine's models.
        names = {e.name for e in engines}
        for r in routers:
            wait_for(lambda: {n for n, tokens in held(r).items() if tokens > 1000} == names, "all routers know what is held")

    def test_a_cache_reset_reaches_all_replicas_and_every_router_forgets(self):
        engines, routers = self.three("--engine-control-paths", "all")
        self.warm(engines, routers)
        steered(engines[1], text=b'{"success": false, "message": "busy"}')
        steered(engines[2], 400, b"no")
        got = self.client(routers[1]).ask("POST", "/reset_prefix_cache?reset_external=true", b"")
        self.assertEqual((got.status, got.get("x-grapevine-reason")), (400, "engine"), got)
        rows = {x["replica"]: x for x in got.json["replicas"]}
        self.assertEqual({n: x["status"] for n, x in rows.items()},
                         {engines[0].name: 200, engines[1].name: 200, engines[2].name: 400})
        self.assertEqual((got.json["status"], rows[engines[2].name]["answer"]), (400, "no"))
        for e in engines:
            self.assertEqual(targets(e), [("POST", "/reset_prefix_cache?reset_external=true")])
        for r in routers:
            wait_for(lambda: held(r).get(engines[0].name) == 0, "it forgets what the first one held")
            self.assertGreater(held(r)[engines[1].name], 1000)
            self.assertGreater(held(r)[engines[2].name], 1000)
        self.assertEqual(routers[1].metric("engine_cache_resets_total"), 1)

        # gvctl uses the path that the engine has: for one replica, for a model's replicas, for all.
        def sglang(asked):
            asked.read_body()
            asked.send(answer(200, b"Cache flushed.") if asked.path == "/flush_cache" else answer(404, b""))
        for e in engines:
            e.clear()
            e.handler = sglang
        status, out, err = gvctl("reset-cache", engines[1].name, admin=routers[2].admin_port)
        self.assertEqual((status, out, err), (0, "1 of 1 replica emptied its cache\n", ""))
        self.assertEqual([a.path for a in engines[1].requests], ["/reset_prefix_cache", "/flush_cache"])
        self.assertEqual(engines[0].requests + engines[2].requests, [])
        for r in routers:
            wait_for(lambda: held(r)[engines[1].name] == 0, "and the second one's")
        steered(engines[0], 500, b"broken")
        status, out, err = gvctl("reset-cache", "--model", "m", admin=routers[0].admin_port)
        self.assertEqual((status, err), (1, ""))
        self.assertEqual(out, "2 of 3 replicas emptied their caches\n%s: 500, broken\n" % engines[0].name)
        wait_for(lambda: max(held(routers[1]).values()) == 0, "nothing is held any more")
        status, out, err = gvctl("reset-cache", "--model", "other", admin=routers[0].admin_port)
        self.assertEqual((status, out, err),
                         (1, "", "gvctl: No replica lists the model `other`. (404)\n"))
        # An empty name matches nothing: a script's variable was not set.
        before = [len(e.requests) for e in engines]
        for words, why in (([""], "No replica is given: want ?replica=HOST:PORT."),
                           (["--model", ""], "No model is given: want ?model=NAME.")):
            self.assertEqual(gvctl("reset-cache", *words, admin=routers[0].admin_port), (1, "", "gvctl: %s (400)\n" % why))
        self.assertEqual([len(e.requests) for e in engines], before)


class One(Case):
    def test_control_paths_bodies_and_target_replicas(self):
        a, b = (steered(self.engine(models=(m,))) for m in ("m", "n"))
        dead = "http://127.0.0.1:%d" % closed_port()
        r = self.router([a, b, dead], "--engine-control-paths", "all")  # two are up and have listed their models
        c = self.client(r)
        got = c.ask("POST", "/sleep?level=1&mode=wait", b"")
        self.assertEqual((got.status, got.get("x-grapevine-reason")), (502, "bad_gateway"))
        rows = {x["replica"]: x for x in got.json["replicas"]}
        self.assertEqual([rows[e.name]["status"] for e in (a, b)], [200, 200])
        self.assertEqual(rows[dead[7:]]["error"], "its port refuses connections")
        got = c.ask("POST", "/v1/load_lora_adapter?model=n", b'{"lora_name":"l"}',
                    [("Content-Type", "application/json"), ("Authorization", "Bearer k")])
        self.assertEqual((got.status, [x["replica"] for x in got.json["replicas"]]), (200, [b.name]))
        self.assertEqual(b.requests[-1].target, "/v1/load_lora_adapter")
        self.assertEqual((b.requests[-1].read_body(), b.requests[-1].get("content-type"),
                          b.requests[-1].get("authorization")),
                         (b'{"lora_name":"l"}', "application/json", "Bearer k"))
        got = c.ask("POST", "/wake_up?tags=weights&replica=%s&tags=kv" % a.name, b"")
        self.assertEqual((got.status, a.requests[-1].target), (200, "/wake_up?tags=weights&tags=kv"))
        for query, reason in (("replica=10.9.9.9:1", "path"), ("model=x", "model")):
            got = c.ask("POST", "/wake_up?" + query, b"")
            self.assertEqual((got.status, got.get("x-grapevine-reason")), (404, reason))
        self.assertEqual(c.ask("POST", "/%66lush_cache?replica=http%3A//" + a.name, b"").status, 200)
        self.assertEqual(r.metric("engine_cache_resets_total"), 3)
        self.assertEqual(self.client(r).ask("OPTIONS", "/sleep").status, 405)

    def test_a_large_body_and_endless_answers_are_bounded(self):
        a = steered(self.engine(), text=b"x" * 100000)
        r = self.router([a], "--engine-control-paths", "all")
        got = self.client(r).ask("POST", "/start_profile", b"y" * 65537)
        self.assertEqual(got.status, 413)
        got = self.client(r).ask("POST", "/start_profile", b"y" * 65536)
        self.assertEqual((got.status, got.json["replicas"][0]["answer"]), (200, "x" * 4096))
        steered(a, text=b"x" * 300000)
        got = self.client(r).ask("GET", "/server_info?replica=" + a.name)
        self.assertEqual((got.status, "error" in got.json["replicas"][0]), (502, True))

    def test_only_marked_keys_may_control_engines(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        keys = os.path.join(folder.name, "keys")
        secret = {}
        for name, options in (("ops", ["--control"]), ("alice", []), ("part", ["--control", "--models", "m"])):
            status, out, err = gvctl("key", "new", name, "--file", keys, *options)
            self.assertEqual((status, err), (0, ""))
            secret[name] = out.strip()
        with open(keys) as f:
            self.assertRegex(f.read(), r"ops blake2b:[0-9a-f]{64} control\n")
        engine_key = os.path.join(folder.name, "engine.key")
        with open(engine_key, "w") as f:
            f.write("sk-engines\n")
        os.chmod(engine_key, 0o600)
        e = steered(self.engine())
        r = self.router([e], "--engine-control-paths", "all", "--client-keys-file", keys,
                        "--replica-api-key-file", engine_key)
        c = self.client(r)
        self.assertEqual(c.ask("POST", "/flush_cache", b"").status, 401)
        for name in ("alice", "part"):
            got = self.client(r).ask("POST", "/flush_cache", b"", bearer(secret[name]))
            self.assertEqual((got.status, got.get("x-grapevine-reason"), got.get("x-grapevine-limit")),
                             (403, "control", "client-keys-file"))
            self.assertIn("may not control engines", got.json["error"]["message"])
        self.assertEqual(e.requests, [])
        self.assertEqual(r.metric('requests_refused_total{reason="control"}'), 2)
        self.assertEqual([e["reason"] for e in r.events("request")], ["control"] * 2)
        self.assertEqual(self.client(r).ask("POST", "/flush_cache", b"", bearer(secret["ops"])).status, 200)
        self.assertEqual(e.requests[-1].get("authorization"), "Bearer sk-engines")
        self.assertEqual(r.wait_event("engine_control")["key"], "ops")

class Fields(Case):
    """Each of these fields reached the engine as the client wrote it, and the engine connects to the host that it
    names."""

    def test_clients_cannot_send_fields_meant_for_engines(self):
        e = steered(self.engine())
        r = self.router([e], "--other-paths", "pass")
        fields = ('"kv_transfer_params":{"do_remote_prefill":true,"remote_host":"evil"}', '"bootstrap_host":"evil"',
                  '"b\\u006fotstrap_room":1', '"vllm_xargs":{"ec_transfer_params":1}',
                  '"request_id":"___prefill_addr_evil:1___"',
                  '"disaggregated_params":null,"disaggregated_params":{}')
        for path in (CHAT, "/v1/completions", "/v1/responses", "/v1/messages", "/generate", "/api/v1/chat/completions"):
            for field in fields:
                text = b'{"model":"m","stream":true,%s,"messages":[],"prompt":"x","input":"x"}' % field.encode()
                got = self.client(r).ask("POST", path, text)
                self.assertEqual(got.status, 400, (path, field, got))
                self.assertIn(b"engine-fields", got.body)
        got = self.client(r).post(CHAT, body(), headers=[("X-Prefiller-Host-Port", "evil:1")])
        self.assertEqual((got.status, got.json["error"]["param"]), (400, "X-Prefiller-Host-Port"))
        self.assertEqual(e.requests, [])
        self.assertEqual(r.metric('requests_refused_total{reason="engine_field"}'), 37)
        self.assertEqual(self.client(r).post(CHAT, body(kv_transfer_params=None)).status, 200)


if __name__ == "__main__":
    unittest.main()
