"""Engines that require an API key: with the router's own key everything works as without a key; without one the router
learns models from clients' requests."""

import json
import os
import tempfile
import unittest

from lib import Case, Engine, answer, answer_json, chunk, request, slow_ms, wait_for
from test_daemon import run

CHAT = "/v1/chat/completions"
FAST = ("--speed-up", "50", "--output-tokens", "5")
KEY = "sk-engines"
UNKNOWN = {"error": {"message": "The model `m` does not exist. Valid aliases: x.",
                     "type": "NotFoundError", "param": "model", "code": 404}}


def bearer(key):
    return [("Authorization", "Bearer " + key)]


class KeyCase(Case):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def key_file(self, text=KEY + "\n", name="key", mode=0o600):
        path = os.path.join(self.folder, name)
        with open(path + ".new", "w") as f:
            f.write(text)
        os.chmod(path + ".new", mode)
        os.rename(path + ".new", path)  # no reader sees half of it
        return path

    def two(self, *args):
        """Two engines with a key, of one model each."""
        return [self.sim(*FAST, "--api-key", KEY, "--model", m, *args) for m in ("m1", "m2")]

    def ready(self, sims, *args):
        r = self.router([s.url for s in sims], *args)
        wait_for(lambda: len({e["replica"] for e in r.events("replica_up")}) == len(sims),
                 "replicas up")
        return r

    def refused(self, r, n):
        return wait_for(lambda: len(r.events("replica_refuses_probes")) >= n and
                        r.events("replica_refuses_probes"), "%d refusals" % n)

    def shown(self, r):
        """The column MODELS of gvctl replicas, and all of its text."""
        status, out, err = run("gvctl", "--admin", "http://127.0.0.1:%d" % r.admin_port, "replicas", "-o", "wide", "-v")
        self.assertEqual(status, 0, err)
        rows = [line.split() for line in out.partition("\n\n")[0].splitlines()]
        at = rows[0].index("MODELS")
        return {row[0]: row[at] for row in rows[1:]}, out

    def rows(self, r):
        return {row["name"]: row for row in r.admin("GET", "/replicas").json}

    def told(self, r, sims):
        wait_for(lambda: all(self.rows(r)[s.name]["models"]["from"] == "engine" for s in sims),
                 "the models of all")

    def ask(self, c, model, key=KEY, text="x", **more):
        body = {"messages": [{"role": "user", "content": text}], **more}
        if model is not None:
            body["model"] = model
        return c.post(CHAT, body, bearer(key) if key else ())

    def models(self, r, key, path="/v1/models"):
        c = self.client(r)
        return c.ask("GET", path, headers=bearer(key) if key else ())


class WithoutAKey(KeyCase):
    def test_every_request_finds_its_model(self):
        """Before, 8 of 20 requests got 404."""
        sims = self.two()
        r = self.ready(sims)
        self.refused(r, 2)
        c = self.client(r)
        for n in range(20):
            for model, sim in zip(("m1", "m2"), sims):
                got = self.ask(c, model, text="question %d" % n)
                self.assertEqual((got.status, got.get("x-grapevine-replica")), (200, sim.name))
        rows = self.rows(r)
        for model, sim in zip(("m1", "m2"), sims):
            self.assertEqual(rows[sim.name]["models"],
                             {"names": [model], "count": 1, "from": "clients", "label": "", "list_status": None})
            self.assertEqual(rows[sim.name]["probes_refused"], ["/v1/models"])
        # After the first of each all went where their model is.
        self.assertLessEqual(r.metric("retries_total"), 2)
        r.quiet()

    def test_refused_probes_are_logged_once_with_a_remedy(self):
        sims = self.two()
        r = self.ready(sims, "--health-interval", "100ms", "--scrape-interval", "100ms")
        told = self.refused(r, 2)
        self.assertEqual({e["replica"] for e in told}, {s.name for s in sims})
        for e in told:
            self.assertEqual((e["level"], e["path"], e["status"]), ("warn", "/v1/models", 401))
            self.assertIn("replica-api-key-file", e["want"])
        label = '{replica="%s"}' % sims[0].name
        self.assertEqual(r.metric("replica_probes_refused" + label), 1)
        # The models are asked again when a replica comes back: still no other line.
        for s in sims:
            s.call("POST", "/sim/fail", {"mode": "refuse", "for_ms": 600})
        wait_for(lambda: len(r.events("replica_up")) == 4, "both back")
        self.assertEqual(self.ask(self.client(r), "m2").status, 200)
        self.assertEqual(len(r.events("replica_refuses_probes")), 2)
        self.assertEqual(r.events("replica_metrics_unknown"), [])
        column, out = self.shown(r)
        self.assertEqual([column[s.name] for s in sims], ["refused", "1?"])
        self.assertIn("Give the router the engines' API key: --replica-api-key-file FILE.", out)
        self.assertIn("refused: the engine answers 401 or 403", out)

    def test_models_are_listed_with_the_clients_key(self):
        sims = self.two()
        r = self.ready(sims)
        self.refused(r, 2)
        got = self.models(r, KEY)
        self.assertEqual((got.status, got.json["object"]), (200, "list"))
        self.assertEqual(sorted(m["id"] for m in got.json["data"]), ["m1", "m2"])
        got = self.models(r, KEY, "/v1/models/m2")
        self.assertEqual((got.status, got.json["id"]), (200, "m2"))
        self.assertEqual(self.models(r, KEY, "/v1/models/m3").status, 404)
        for key in ("wrong", None):  # the engines' own words, not an empty list
            for path in ("/v1/models", "/v1/models/m2"):
                got = self.models(r, key, path)
                self.assertEqual((got.status, got.json), (401, {"error": "Unauthorized"}))
        # From the lists the router learned which replica serves which model.
        c = self.client(r)
        for model in ("m1", "m2"):
            self.assertEqual(self.rows(r)[sims[model == "m2"].name]["models"]["names"], [model])
        self.assertEqual(self.ask(c, "m1", key="wrong").status, 401)
        r.quiet()

    def test_an_unknown_model_is_tried_once_at_each_replica(self):
        sims = self.two()
        r = self.ready(sims)
        self.refused(r, 2)
        c = self.client(r)
        got = self.ask(c, "m3")
        self.assertEqual(got.status, 404)
        self.assertIn("Valid aliases", got.json["error"]["message"])
        self.assertEqual(r.metric("retries_total"), 1)
        for _ in range(5):  # denied by both lately: one engine's word is enough
            self.assertEqual(self.ask(c, "m3").status, 404)
        self.assertEqual(r.metric("retries_total"), 1)
        self.assertEqual(self.ask(c, "m3", key="wrong").status, 401)
        r.quiet()

    def test_a_model_whose_replica_is_down_is_not_404(self):
        """The model may well exist: no replica answered, or none can be asked."""
        for when_all_down in ("try", "refuse"):
            self.model_down(when_all_down)

    def model_down(self, when_all_down):
        sims = self.two()
        r = self.ready(sims, "--when-all-down", when_all_down)
        self.refused(r, 2)
        c = self.client(r)
        sims[1].stop()
        r.wait_event("replica_down")
        for _ in range(2):  # the other one's 404 was asked for, and then is remembered
            self.assertEqual(self.ask(c, "m2").status, 503)
        self.assertEqual(self.ask(c, "m1").status, 200)


class Unknown404(KeyCase):
    """Scripted engines that refuse to list models: the router holds a 404 back until it knows what the 404 means."""

    def refusing(self, n=1, models=()):
        engines = [self.engine(models=models) for _ in range(n)]
        for e in engines:
            e.probes["/v1/models"] = lambda asked: asked.send(answer_json({"error": "no"}, 403))
        return engines

    def ready(self, engines, *args):
        r = self.router(engines, *args)
        self.refused(r, len(engines))
        return r

    def post(self, r, **more):
        return self.client(r).post(CHAT, {"model": "m", "messages": [], **more})

    def test_other_404s_pass_unchanged_and_deny_no_model(self):
        """The first 404 may be the replica's own fault, so the request is tried at the other replica, which agrees."""
        a, b = self.refusing(2)
        r = self.ready([a, b])
        long = {"error": {"message": "x" * 20000, "param": "model"}}
        for body, asked in (({"detail": "Not Found"}, 2), ({"detail": "Not Found"}, 1), (long, 1)):
            raw = json.dumps(body).encode()
            for e in (a, b):
                e.clear()
                e.replies(answer(404, raw, [("Content-Type", "application/json"), ("X-Own", "1")],
                                 "Its Own Words"))
            got = self.post(r)
            self.assertEqual((got.start, got.body, got.get("x-own")),
                             ("HTTP/1.1 404 Its Own Words", raw, "1"))
            self.assertEqual(len(a.requests + b.requests), asked)
        r.quiet()

    def test_a_404_in_small_pieces_is_judged_whole(self):
        a, b = self.refusing(2)
        raw = json.dumps(UNKNOWN).encode()
        pieces = b"".join(chunk(raw[i:i + 7]) for i in range(0, len(raw), 7)) + b"0\r\n\r\n"
        head = (b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n"
                b"Transfer-Encoding: chunked\r\n\r\n")

        def slowly(asked):
            asked.read_body()
            for i in range(0, len(head + pieces), 11):
                asked.send((head + pieces)[i:i + 11])
        a.handler = b.handler = slowly
        r = self.ready([a, b])
        got = self.post(r)
        self.assertEqual((got.status, got.json), (404, UNKNOWN))
        self.assertEqual((len(a.requests), len(b.requests)), (1, 1))
        r.quiet()

    def test_a_404_that_breaks_off_is_no_answer(self):
        a, b = self.refusing(2)
        a.closes(b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n"
                 b"Content-Length: 500\r\n\r\n{\"error\":")
        b.handler = a.handler
        r = self.ready([a, b])
        self.assertEqual(self.post(r).status, 502)
        b.replies(answer(200, b"{}", [("Content-Type", "application/json")]))
        got = self.post(r)
        self.assertEqual((got.status, got.body), (200, b"{}"))
        r.quiet()

    def test_a_busy_replica_may_serve_a_model_that_another_denies(self):
        a, b = self.refusing(2)
        a.replies(answer_json({"error": {"message": "busy"}}, 503))
        b.replies(answer_json(UNKNOWN, 404))
        r = self.ready([a, b], "--policy", "round_robin")
        for _ in range(4):
            self.assertEqual(self.post(r).status, 503)
        r.quiet()

    def test_a_client_that_leaves_ends_its_request_for_models(self):
        e, = self.refusing()
        asked_for = []

        def hang(asked):
            if asked.get("authorization"):
                asked_for.append(asked)
                asked.wait_gone()
            else:
                asked.send(answer_json({"error": "no"}, 403))
        e.probes["/v1/models"] = hang
        r = self.ready([e])
        c = self.client(r)
        c.send(request("GET", "/v1/models", headers=bearer("k")))
        wait_for(lambda: asked_for, "the question")
        c.close()
        wait_for(lambda: asked_for[0].gone.is_set(), "the end of the question")
        r.quiet()

    def test_a_hung_replica_does_not_delay_the_others_models(self):
        slow, good = self.refusing(2)
        slow.probes["/v1/models"] = lambda asked: asked.wait_gone() if asked.get("x-api-key") else \
            asked.send(answer_json({"error": "no"}, 403))
        good.probes["/v1/models"] = lambda asked: asked.send(
            answer_json({"object": "list", "data": [{"id": "m", "owned_by": "sglang"}]})
            if asked.get("x-api-key") == "k" else answer_json({"error": "no"}, 403))
        r = self.ready([slow, good], "--health-timeout", slow_ms(1500))
        got = self.client(r).ask("GET", "/v1/models", headers=[("x-api-key", "k")])
        self.assertEqual([m["id"] for m in got.json["data"]], ["m"])
        self.assertEqual(self.rows(r)[good.name]["engine"], "sglang")


class WithAKey(KeyCase):
    def test_with_the_routers_key_all_works_as_without_keys(self):
        sims = self.two()
        r = self.ready(sims, "--replica-api-key-file", self.key_file())
        self.told(r, sims)
        c = self.client(r)
        for n in range(20):
            for model, sim in zip(("m1", "m2"), sims):
                got = self.ask(c, model, text="question %d" % n)
                self.assertEqual((got.status, got.get("x-grapevine-replica")), (200, sim.name))
        self.assertEqual(r.metric("retries_total"), 0)
        self.assertEqual(self.ask(c, "m3").status, 404)
        # The router's key opens nothing to clients.
        for key in ("wrong", None):
            self.assertEqual(self.ask(c, "m1", key=key).status, 401)
        self.assertEqual(r.events("replica_refuses_probes"), [])
        self.assertNotIn(KEY, "\n".join(r.lines))
        for path in ("/config", "/replicas", "/metrics"):
            self.assertNotIn(KEY.encode(), r.admin("GET", path).body)
        r.quiet()

    def test_the_key_goes_only_with_probes_other_than_health(self):
        e = self.engine(models=("m",))
        seen = {}
        for path in ("/health", "/metrics", "/v1/models"):
            seen[path] = []
            def probe(asked, path=path):
                seen[path].append(asked.get("authorization"))
                asked.send(answer_json({"object": "list", "data": [{"id": "m"}]})
                           if path == "/v1/models" else answer(200, b""))
            e.probes[path] = probe
        r = self.router([e], "--replica-api-key-file", self.key_file(KEY + " \r\n"))
        wait_for(lambda: all(seen.values()), "each probe")
        self.assertEqual(set(seen.pop("/health")), {None})
        self.assertEqual({a for list in seen.values() for a in list}, {"Bearer " + KEY})
        for key in (None, "clients"):
            self.ask(self.client(r), "m", key=key)
            self.assertEqual(e.requests[-1].all("authorization"),
                             ["Bearer clients"] if key else [])

    def test_health_checks_send_the_key_after_a_refusal(self):
        e = self.engine()
        seen, open_now = [], []
        def health(asked):
            seen.append(asked.get("authorization"))
            asked.send(answer(200 if open_now or seen[-1] == "Bearer " + KEY else 401, b""))
        e.probes["/health"] = health
        r = self.router([e], "--replica-api-key-file", self.key_file(),
                        "--health-interval", "100ms")
        r.wait_event("replica_up")
        wait_for(lambda: len(seen) > 5, "more checks")
        self.assertEqual(set(seen[1:]), {"Bearer " + KEY})
        self.assertIsNone(seen[0])
        for event in ("replica_refuses_probes", "replica_takes_probes", "replica_down"):
            self.assertEqual(r.events(event), [])
        # Another engine at this address gets no key unless it refuses checks without one.
        e.stop()
        r.wait_event("replica_down")
        open_now.append(True)
        del seen[:]
        e = Engine(port=e.port)
        self.keep(e).probes["/health"] = health
        r.wait_event("replica_up", 2)
        self.assertEqual(set(seen), {None})

    def test_a_key_refused_by_the_health_path_is_logged(self):
        e = self.engine()
        e.probes["/health"] = lambda asked: asked.send(answer(401, b""))
        r = self.router([e], "--replica-api-key-file", self.key_file(), wait_up=False)
        told = r.wait_event("replica_refuses_probes")
        self.assertEqual((told["path"], told["status"]), ("/health", 401))
        self.assertIn("refuses the key", told["want"])
        r.wait_event("replica_down")

    def test_a_router_listed_as_a_replica_never_gets_the_key(self):
        seen = []
        def circle(asked):
            seen.append(asked.get("authorization"))
            asked.send(answer(401, b"", [("x-grapevine-router", "grapevine-00 zz")]))
        e = self.engine()
        for path in ("/health", "/metrics", "/v1/models", "/server_info"):
            e.probes[path] = circle
        r = self.router([e], "--replica-api-key-file", self.key_file(), "--health-interval",
                        "100ms", wait_up=False)
        wait_for(lambda: len(seen) > 3, "more checks")
        self.assertEqual(len(r.events("replica_is_router")), 1)
        self.assertEqual(set(seen), {None})

    def test_a_new_key_is_used_without_a_restart(self):
        self.new_key("vllm")

    def test_a_new_key_is_used_with_sglang(self):
        """SGLang refuses two probes, which are then repeated one after the other."""
        self.new_key("sglang")

    def new_key(self, engine):
        """The file is a link to a link, as in a volume of Kubernetes, and the folder is swapped."""
        sims = self.two("--engine", engine)
        for name, key in (("old", "sk-old"), ("new", KEY)):
            os.mkdir(os.path.join(self.folder, name))
            self.key_file(key, os.path.join(name, "key"))
        data = os.path.join(self.folder, "..data")
        os.symlink("old", data)
        path = os.path.join(self.folder, "key")
        os.symlink("..data/key", path)
        r = self.ready(sims, "--replica-api-key-file", path)
        for e in self.refused(r, 2):
            self.assertIn("refuses the key", e["want"])
        column, out = self.shown(r)
        self.assertEqual([column[s.name] for s in sims], ["refused"] * 2)
        self.assertIn("The engine refuses the key in replica-api-key-file", out)
        self.assertNotIn("Give the router", out)
        if engine == "sglang":
            wait_for(lambda: all(self.rows(r)[s.name]["probes_refused"] ==
                                 ["/v1/models", "/server_info"] for s in sims), "both refused")
        os.symlink("new", data + ".tmp")
        os.rename(data + ".tmp", data)
        self.told(r, sims)
        wait_for(lambda: len(r.events("replica_takes_probes")) == 2, "the change in the log")
        self.assertEqual(r.metric('replica_probes_refused{replica="%s"}' % sims[0].name), 0)
        # A key that does not fit any more: one more line each, and what was listed is not forgotten.
        os.symlink("old", data + ".tmp")
        os.rename(data + ".tmp", data)
        for e in self.refused(r, 4):
            self.assertIn(e["status"], (401, 403))
        self.assertEqual([self.shown(r)[0][s.name] for s in sims], ["1?"] * 2)
        self.assertEqual(self.rows(r)[sims[0].name]["models"]["names"], ["m1"])
        c = self.client(r)
        for model in ("m1", "m2"):
            self.assertEqual(self.ask(c, model).status, 200)
        for key in (KEY, "sk-old"):
            self.assertNotIn(key, "\n".join(r.lines))

    def test_a_key_file_that_goes_bad_leaves_the_key_in_use(self):
        sims = self.two()
        path = self.key_file(mode=0o644)
        r = self.ready(sims, "--replica-api-key-file", path)
        self.assertEqual(r.wait_event("replica_key_readable")["level"], "warn")
        self.told(r, sims)
        reads = len(r.events("replica_key_read"))
        for n, bad in enumerate(("", KEY + "\n" + KEY, "x" * 5000, None), 1):
            if bad is None:
                os.remove(path)
            else:
                self.key_file(bad)
            refused = r.wait_event("replica_key_refused", n)
            self.assertIn('replica-api-key-file "%s"' % path, refused["error"])
            self.assertNotIn(KEY, refused["error"])
            self.key_file()
            self.assertFalse(r.wait_event("replica_key_read", reads + n)["changed"])
        self.assertEqual(len(r.events("replica_key_refused")), 4)
        self.assertEqual(r.events("replica_refuses_probes"), [])
        self.assertEqual(len(r.events("replica_key_readable")), 1)

    def test_a_bad_key_file_stops_the_start(self):
        fifo = os.path.join(self.folder, "fifo")
        os.mkfifo(fifo)
        for path, words in ((os.path.join(self.folder, "none"), "No such file"),
                            (self.key_file("", "empty"), "is empty"),
                            (self.key_file(" \n\r\n", "blank"), "is empty"),
                            (self.key_file("a\nb\n", "two"), "more than one line"),
                            (self.key_file("a b", "space"), "has a space in it"),
                            (self.key_file("k\u00e9y", "umlaut"), "visible ASCII"),
                            (self.key_file("x" * 4097, "long"), "too long"),
                            (self.key_file("x" * 100000, "longer"), "too long"),
                            (fifo, "no regular file"), (self.folder, "no regular file")):
            for command in ((), ("--check-config",)):
                status, out, err = run("grapevine", "--replica", "http://127.0.0.1:1",
                                       "--replica-api-key-file", path, *command)
                self.assertEqual((status, out), (2, out[:0]), path)
                self.assertIn("replica-api-key-file", str(err))
                self.assertIn(words, str(err))
        status, out, err = run("grapevine", "--check-config", "--replica", "http://127.0.0.1:1",
                               "--replica-api-key-file", self.key_file())
        self.assertEqual(status, 0, err)
        self.assertNotIn(KEY, str(out) + str(err))


class SGLang(KeyCase):
    def one(self, *args):
        return self.sim(*FAST, "--engine", "sglang", "--model", "tiny", "--cache-tokens", "123008",
                        "--metrics", "off", *args)

    def kind(self, r, sim):
        row = self.rows(r)[sim.name]
        return row["engine"], row["cache"]["tokens"]

    def test_with_the_key_engine_kind_and_cache_size_are_detected(self):
        """Although it serves no metrics."""
        sim = self.one("--api-key", KEY)
        r = self.ready([sim], "--replica-api-key-file", self.key_file())
        wait_for(lambda: self.kind(r, sim) == ("sglang", 123008), "kind and cache")

    def test_without_the_key_the_kind_is_learned_from_a_client(self):
        sim = self.one("--api-key", KEY)
        r = self.ready([sim])
        self.refused(r, 1)
        self.assertEqual(self.ask(self.client(r), "whatever").status, 200)
        self.assertEqual(self.kind(r, sim), ("auto", 400000))
        self.assertEqual([m["id"] for m in self.models(r, KEY).json["data"]], ["tiny"])
        self.assertEqual(self.kind(r, sim), ("sglang", 400000))
        wait_for(lambda: "/server_info" in self.rows(r)[sim.name]["probes_refused"],
                 "the size is asked for")
        self.assertEqual(len(r.events("replica_refuses_probes")), 1)

    def test_an_sglang_replica_is_tried_for_any_model(self):
        sglang, vllm = self.one(), self.sim(*FAST, "--model", "other")
        r = self.ready([sglang, vllm])
        wait_for(lambda: self.kind(r, sglang)[0] == "sglang" and
                 self.kind(r, vllm)[0] == "vllm", "the kinds")
        self.told(r, [sglang, vllm])
        c = self.client(r)
        for model in ("nope", "default", "tiny"):
            for _ in range(3):
                got = self.ask(c, model)
                self.assertEqual((got.status, got.get("x-grapevine-replica"), got.json["model"]),
                                 (200, sglang.name, model))
        for model in ("tiny:adapter", "nope:adapter"):
            got = self.ask(c, model)  # for the engine to judge
            self.assertEqual((got.status, got.get("x-grapevine-replica")), (400, sglang.name))
        for _ in range(3):
            self.assertEqual(self.ask(c, "other").get("x-grapevine-replica"), vllm.name)
        got = self.models(r, None)
        self.assertEqual(sorted(m["id"] for m in got.json["data"]), ["other", "tiny"])


if __name__ == "__main__":
    unittest.main()
