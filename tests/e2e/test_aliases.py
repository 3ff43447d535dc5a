"""Model aliases: other names for models, weighted splits and fallbacks."""

import json
import threading
import unittest

from lib import HOST, Case, answer_json, wait_for
from lib_cluster import gvctl, run_grapevine
from test_client_keys import KeysCase
from test_engines import CHAT, FAST, message, words
from test_reload import Reloading

ALIAS = "--model-alias"
FORM = [("Content-Type", 'multipart/form-data; boundary="b"')]
PROBES = ("--health-interval", "100ms")


def chat(model, text="x", **more):
    return {"model": model, "messages": [message("user", text)], "max_tokens": 4, **more}


def form(model):
    return (b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF\0\r\n--b\r\n'
            b'Content-Disposition: form-data; name="model"\r\n\r\n' + model + b"\r\n--b--\r\n")


class Fakes(Case):
    def of(self, model, status=200, value=None):
        """An engine that serves that model and denies all else."""
        e = self.engine(models=(model,))

        def handler(asked):
            body = asked.read_body()
            known = b'"%s"' % model.encode() in body or b"\r\n\r\n%s\r\n" % model.encode() in body
            asked.send(answer_json(value or {"model": model, "choices": []}, status if known else 404))
        e.handler = handler
        return e

    def post(self, r, model, path=CHAT, **more):
        return self.client(r).post(path, chat(model, **more))


class Bodies(Fakes):
    def test_an_alias_changes_only_the_model_name(self):
        e = self.of("llama-70b")
        r = self.router([e], ALIAS, "gpt-4o=llama-70b", "--no-ask-usage")
        json_type = [("Content-Type", "application/json")]
        for name in (b'"gpt-4o"', b'"gpt\\u002d4o"'):
            for frame in (b'{"model":%s,"messages":[{"role":"user","content":"gpt-4o"}]}',
                          b' { "messages" : [] , "metadata":{"model":"gpt-4o"},\n "model"\t: %s, "n": 1.0}\n ',
                          b'{"messages":[{"role":"user","content":"' + b"long " * 60000 + b'"}],"model":%s}',
                          b'{"model":"other","messages":[],"model":%s}'):
                for head in (json_type, json_type + [("Transfer-Encoding", "chunked")]):
                    e.clear()
                    sent = frame % name
                    data = b"%x\r\n%s\r\n0\r\n\r\n" % (len(sent), sent) if len(head) > 1 else sent
                    c = self.client(r)
                    if len(head) > 1:
                        c.send(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                               b"Transfer-Encoding: chunked\r\n\r\n" % CHAT.encode() + data)
                        got = c.read("POST")
                    else:
                        got = c.ask("POST", CHAT, data, head)
                    self.assertEqual((got.status, got.get("x-grapevine-model"), got.get("x-grapevine-fallback")),
                                     (200, "llama-70b", None), got)
                    self.assertEqual(e.requests[0].body, frame % b'"llama-70b"')
        r.quiet()

    def test_a_real_name_is_left_alone(self):
        e = self.of("llama-70b")
        r = self.router([e], ALIAS, "gpt-4o=llama-70b", "--no-ask-usage")
        sent = b'{ "model":"llama-70b","messages":[] }'
        got = self.client(r).ask("POST", CHAT, sent, [("Content-Type", "application/json")])
        self.assertEqual((got.status, got.get("x-grapevine-model")), (200, None))
        self.assertEqual(e.requests[0].body, sent)
        got = self.post(r, "gpt-4")
        self.assertEqual(got.status, 404)
        self.assertIn("`gpt-4` does not exist", got.json["error"]["message"])

    def test_aliases_work_in_multipart_forms(self):
        e = self.of("whisper-large-v3")
        r = self.router([e], ALIAS, "w=whisper-large-v3")
        got = self.client(r).ask("POST", "/v1/audio/transcriptions", form(b"w"), FORM)
        self.assertEqual((got.status, got.get("x-grapevine-model")), (200, "whisper-large-v3"), got)
        self.assertEqual(e.requests[0].body, form(b"whisper-large-v3"))

    def test_the_alias_and_the_usage_request_are_edited_into_one_body(self):
        """The router asks engines for usage that the client did not request: both edits in one body."""
        e = self.of("llama-70b")
        r = self.router([e.url + "#engine=vllm"], ALIAS, "g=llama-70b")
        got = self.post(r, "g", stream=True)
        self.assertEqual(got.status, 200)
        asked = json.loads(e.requests[0].body)
        self.assertEqual((asked["model"], asked["stream"], asked["messages"][0]["content"]), ("llama-70b", True, "x"))


class Lists(Fakes):
    def test_aliases_are_listed(self):
        r = self.router([self.of("a"), self.of("b")], ALIAS, "x=a:1,b:1", ALIAS, "y=nobody", ALIAS, "z=nobody>b")
        ids = lambda: sorted(m["id"] for m in r.get("/v1/models").json["data"])
        wait_for(lambda: ids() == ["a", "b", "x", "z"], "the lists")
        self.assertEqual((r.get("/v1/models/x").json["id"], r.get("/v1/models/x").json["root"]), ("x", "a"))
        self.assertEqual(r.get("/v1/models/y").status, 404)
        self.assertEqual(r.get("/v1/models/b").json["id"], "b")


class Keys(KeysCase, Fakes):
    def test_client_keys_are_checked_against_the_requested_name(self):
        e = self.of("a")
        alias, real = self.new("one", "--models", "x"), self.new("two", "--models", "a")
        r = self.start([e], ALIAS, "x=a")
        ask = lambda: self.client(r).ask("GET", "/v1/models", b"", [("Authorization", "Bearer " + alias)])
        wait_for(lambda: ask().status == 200, "the list")
        for key, good, bad in ((alias, "x", "a"), (real, "a", "x")):
            head = [("Authorization", "Bearer " + key), ("Content-Type", "application/json")]
            got = self.client(r).ask("GET", "/v1/models", b"", head)
            self.assertEqual([m["id"] for m in got.json["data"]], [good])
            for path in (CHAT, "/v1/messages", "/v1/responses"):
                body = lambda m: json.dumps(dict(chat(m), input="x")).encode()
                self.assertEqual(self.client(r).ask("POST", path, body(good), head).status, 200)
                got = self.client(r).ask("POST", path, body(bad), head)
                self.assertEqual(got.status, 404)
                self.assertIn(bad, got.body.decode())
            self.assertEqual(self.client(r).ask("GET", "/v1/models/" + bad, b"", head).status, 404)


class Splits(Fakes):
    def went(self, r, model, text, **more):
        got = self.post(r, model, text=text, **more)
        self.assertEqual(got.status, 200, got)
        return got.get("x-grapevine-model")

    def test_a_conversation_stays_on_one_side_of_a_split(self):
        r = self.router([self.of("a"), self.of("b")], ALIAS, "x=a:70,b:30")
        for system in ([message("system", "the same for all")], []):
            sides = {}
            for n in range(60):
                turns = system + [message("user", "question %d" % n)]
                for turn in range(3):
                    got = self.client(r).post(CHAT, {"model": "x", "messages": turns})
                    sides.setdefault(n, set()).add(got.get("x-grapevine-model"))
                    turns = turns + [message("assistant", "yes"), message("user", "more %d" % turn)]
            self.assertTrue(all(len(s) == 1 for s in sides.values()), sides)
            share = sum(s == {"a"} for s in sides.values())
            self.assertTrue(25 <= share <= 57, share)  # 42 of 60; beyond this one in a million

    def test_a_session_stays_on_one_side_of_a_split(self):
        r = self.router([self.of("a"), self.of("b")], ALIAS, "x=a,b")
        for n in range(12):
            told = {self.went(r, "x", "text %d" % k, prompt_cache_key="session %d" % n) for k in range(4)}
            self.assertEqual(len(told), 1)
        heads = set()
        for k in range(6):
            body = json.dumps(chat("x", "text %d" % k)).encode()
            got = self.client(r).ask("POST", CHAT, body, [("Content-Type", "application/json"), ("X-Session-Id", "s")])
            heads.add(got.get("x-grapevine-model"))
        self.assertEqual(len(heads), 1)

    def test_counters_say_where_requests_went(self):
        r = self.router([self.of("a"), self.of("b")], ALIAS, "x=a:1,b:1")
        went = [self.went(r, "x", "text %d" % n) for n in range(20)]
        r.quiet()
        for model in ("a", "b"):
            self.assertEqual(r.metric('alias_requests_total{alias="x",model="%s"}' % model), went.count(model))
        self.assertEqual(r.metric("alias_fallbacks_total"), 0)
        log = [e for e in r.events("request")]
        self.assertTrue(all(e["alias"] == "x" and e["model"] in "ab" for e in log), log[:1])


class Fallbacks(Fakes):
    def told(self, got):
        return got.status, got.get("x-grapevine-model"), got.get("x-grapevine-fallback")

    def test_the_fallback_serves_when_no_replica_of_the_model_is_up(self):
        a, b = self.of("a"), self.of("b")
        r = self.router([a, b], ALIAS, "x=a>b", *PROBES)
        self.assertEqual(self.told(self.post(r, "x")), (200, "a", None))
        a.refuse()
        # The first requests find the replica dead, and their bodies are rewritten; then probes find it down.
        for path in (CHAT, "/v1/completions", "/v1/messages", "/v1/responses"):
            got = self.client(r).post(path, dict(chat("x"), prompt="x", input="x"))
            self.assertEqual(self.told(got), (200, "b", "true"), got)
            self.assertEqual(json.loads(b.requests[-1].body)["model"], "b")
        self.assertEqual(self.post(r, "a").status, 503 if self.down(r, a) else 502)
        self.assertEqual(self.told(self.post(r, "x")), (200, "b", "true"))
        r.quiet()
        self.assertEqual(r.metric('alias_fallbacks_total{alias="x",model="b"}'), 5)
        decision = r.admin("GET", "/decisions").json["decisions"][-1]
        self.assertEqual((decision["model"], decision["alias"], decision["fallback"]), ("b", "x", True))
        got = r.admin("POST", "/explain", json.dumps(chat("x")).encode()).json
        self.assertEqual((got["model"], got["alias"], got["fallback"], got["choice"]), ("b", "x", True, b.name))
        code, out, err = gvctl("explain", admin=r.admin_port, stdin=json.dumps(chat("x")).encode())
        self.assertEqual((code, err), (0, ""))
        self.assertIn("x is an alias: the request goes to b, a fallback", out)

    def down(self, r, engine):
        row = lambda: [k for k in r.admin("GET", "/replicas").json if k["name"] == engine.name][0]
        return wait_for(lambda: row()["health"] == "down", "the probe")

    def test_the_fallback_replaces_the_model_name_anywhere_in_the_body(self):
        a, b = self.of("a"), self.of("a-much-longer-name")
        a.replies(answer_json({"error": {"message": "overloaded"}}, 503))
        r = self.router([a, b], ALIAS, "x=a>a-much-longer-name", ALIAS, "y=a-much-longer-name>a", "--no-ask-usage",
                        "--retry-budget", "1")
        for text in (b"x", b"long " * 40000):
            for name, frame in (("end", b'{"messages":[{"role":"user","content":"%s"}],"model":%%s,"n":1}' % text),
                                ("front", b'{"model" : %%s,"messages":[{"role":"user","content":"%s"}]}' % text)):
                with self.subTest(name=name, bytes=len(text)):
                    b.clear()
                    got = self.client(r).ask("POST", CHAT, frame % b'"x"', [("Content-Type", "application/json")])
                    self.assertEqual(self.told(got), (200, "a-much-longer-name", "true"), got)
                    self.assertEqual(b.requests[-1].body, frame % b'"a-much-longer-name"')
        got = self.client(r).ask("POST", "/v1/audio/transcriptions", form(b"x"), FORM)
        if got.status == 200:  # a request that may be no computation is sent again only if it never arrived
            self.assertEqual(b.requests[-1].body, form(b"a-much-longer-name"))
        r.quiet()

    def test_a_full_or_slow_model_causes_no_fallback(self):
        a, b = self.of("a"), self.of("b")
        go = threading.Event()
        usual = a.handler
        a.handler = lambda asked: (go.wait(60), usual(asked))
        r = self.router([a, b], ALIAS, "x=a>b", "--replica-requests-max", "1")
        asking = [threading.Thread(target=self.post, args=(r, "x")) for _ in range(2)]
        for t in asking:
            t.start()
        wait_for(lambda: r.admin("GET", "/queue").json["waiting"], "one waits")
        go.set()
        for t in asking:
            t.join()
        self.assertEqual((len(a.requests), len(b.requests)), (2, 0))

    def test_the_other_side_of_a_split_is_tried_before_the_fallback(self):
        a, b, c = self.of("a"), self.of("b"), self.of("c")
        r = self.router([a, b, c], ALIAS, "x=a:1,b:1>c", *PROBES)
        a.refuse()
        self.down(r, a)
        for n in range(8):
            self.assertEqual(self.post(r, "x", text="%d" % n).get("x-grapevine-model"), "b")
        b.refuse()
        self.down(r, b)
        self.assertEqual(self.told(self.post(r, "x")), (200, "c", "true"))

    def test_a_client_error_causes_no_fallback(self):
        a, b = self.of("a", 400, {"error": {"message": "bad"}}), self.of("b")
        r = self.router([a, b], ALIAS, "x=a>b")
        for _ in range(3):
            self.assertEqual(self.post(r, "x").status, 400)
        self.assertEqual(b.requests, [])


class Engines(Fakes):
    def test_cache_is_shared_with_the_real_name(self):
        a, b = (self.sim("--model", "m", *FAST) for _ in range(2))
        r = self.router([a.url, b.url], ALIAS, "x=m")
        talk = [message("system", words("s", 800)), message("user", words("u", 200))]
        where = self.client(r).post(CHAT, {"model": "m", "messages": talk, "max_tokens": 2})
        self.assertEqual(where.status, 200)
        for model in ("x", "m"):
            got = self.client(r).post(CHAT, {"model": model, "messages": talk, "max_tokens": 2})
            self.assertEqual(got.get("x-grapevine-replica"), where.get("x-grapevine-replica"))
            self.assertEqual(got.json["model"], "m")
            self.assertGreater(got.json["usage"]["prompt_tokens_details"]["cached_tokens"], 500)
            row = r.admin("POST", "/explain", json.dumps({"model": model, "messages": talk}).encode()).json
            self.assertGreater(max(k["cached_tokens"] for k in row["replicas"]), 500)

    def test_all_apis_streamed_or_not(self):
        r = self.router([self.sim("--model", "m", *FAST).url], ALIAS, "x=m")
        for path in (CHAT, "/v1/completions", "/v1/messages", "/v1/responses"):
            for stream in (False, True):
                body = dict(chat("x", stream=stream), max_output_tokens=4)
                body.update({"prompt": "x"} if path == "/v1/completions" else {})
                body.update({"input": "x"} if path == "/v1/responses" else {})
                got = self.client(r).post(path, body)
                self.assertEqual((got.status, got.get("x-grapevine-model")), (200, "m"), (path, got))
                self.assertIn(b'"m"', got.body)
        r.quiet()

    def test_a_stored_response_is_continued_by_the_model_that_made_it(self):
        r = self.router([self.sim("--model", m, *FAST).url for m in "ab"], ALIAS, "x=a,b")
        for n in range(6):
            got = self.client(r).post("/v1/responses", {"model": "x", "input": "begin %d" % n, "max_output_tokens": 2})
            for turn in range(3):
                again = self.client(r).post("/v1/responses", {"model": "x", "input": "turn %d %d" % (n, turn),
                                                              "previous_response_id": got.json["id"],
                                                              "max_output_tokens": 2})
                self.assertEqual((again.status, again.json["model"]), (200, got.json["model"]), again)
                got = again


class Settings(Reloading, Fakes):
    def test_a_bad_alias_stops_the_start(self):
        replica = "http://%s:1" % HOST
        for entries, said in ((["a=a"], "a names itself, want another name"),
                              (["a=b", "b=c"], "b is an alias itself, want the name that an engine lists"),
                              (["a=b", "b=a"], "is an alias itself"), (["a=b:0"], "want a weight from 1 to 1000000"),
                              (["a b=c"], "want names of letters"), (["m=a"], "serves a model of that name")):
            args = ["--replica", replica + "#model=m"] + [w for e in entries for w in (ALIAS, e)]
            code, err = run_grapevine("--check-config", *args)
            self.assertEqual(code, 2, err)
            self.assertIn("model-alias", err)
            self.assertIn(said, err)

    def test_every_bad_setting_is_reported(self):
        code, err = run_grapevine("--check-config", "--replica", "x", ALIAS, "a b=c", "--ttl", "soon")
        self.assertEqual((code, len(err.splitlines())), (2, 3), err)
        self.assertTrue(all(line.startswith("grapevine: bad setting ") for line in err.splitlines()), err)

    def test_aliases_change_without_a_restart(self):
        a, b = self.of("a"), self.of("b")
        r = self.started([a, b], lines=("model-alias:", "  x: a"))
        self.assertEqual(self.post(r, "x").get("x-grapevine-model"), "a")
        self.reloaded(r, "model-alias:", "  x: b", "  y: a > b")
        self.assertEqual(self.post(r, "x").get("x-grapevine-model"), "b")
        self.assertEqual(self.post(r, "y").get("x-grapevine-model"), "a")
        self.reloaded(r)
        self.assertEqual(self.post(r, "x").status, 404)


if __name__ == "__main__":
    unittest.main()
