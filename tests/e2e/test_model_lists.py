"""Lists of models can be outdated: the router asks another engine for a denied model, looks for an unlisted one, and
does not report one scaled to zero as unknown."""

import json
import os
import threading
import unittest

from lib import HOST, Client, Sim, answer_json, closed_port, wait_for
from lib_cluster import Clustered, gvctl
from lib_dns import Dns
from test_engines import CHAT, FAST, message


def unknown(name):
    return {"error": {"message": "The model `%s` does not exist." % name, "type": "NotFoundError",
                      "param": "model", "code": 404}}


SGLANG_ADAPTER = {"object": "error", "message": "Got LoRA adapter that has never been loaded: ad\nAll loaded "
                                                "adapters: dict_keys([]).", "type": "BadRequestError",
                  "param": None, "code": 400}


class Asking(threading.Thread):
    """Clients that ask for a model one after the other until stop()."""

    def __init__(self, ports, model, clients=3):
        super().__init__(daemon=True)
        self.model, self.statuses, self.lock, self.ending = model, [], threading.Lock(), threading.Event()
        self.threads = [threading.Thread(target=self._one, args=(ports[i % len(ports)],), daemon=True)
                        for i in range(clients)]
        for t in self.threads:
            t.start()

    def _one(self, port):
        c = Client(port)
        body = json.dumps({"model": self.model, "max_tokens": 2, "messages": [message("user", "x")]}).encode()
        while not self.ending.is_set():
            got = c.ask("POST", CHAT, body, [("Content-Type", "application/json")])
            with self.lock:
                self.statuses.append(got.status)
        c.close()

    def wait(self, n):
        before = len(self.statuses)
        wait_for(lambda: len(self.statuses) >= before + n, "%d more answers" % n)

    def stop(self):
        self.ending.set()
        for t in self.threads:
            t.join()
        return [s for s in self.statuses if s != 200]


class Lists(Clustered):
    """Engines that serve what is in their list, and deny all else."""

    def listing(self, *models, status=404, said=unknown):
        e = self.engine(models=models)
        e.lists = 0

        def handler(asked):
            name = json.loads(asked.read_body()).get("model")
            if name in e.models:
                asked.send(answer_json({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 1}}))
            else:
                asked.send(answer_json(said(name), status))

        def listed(asked):
            e.lists += 1
            asked.send(answer_json({"object": "list", "data": [
                {"id": m, "owned_by": "vllm", "parent": None if m == "m" else "m"} for m in e.models]}))
        e.handler = handler
        e.probes["/v1/models"] = listed
        return e

    def routers(self, n, engines):
        if n == 1:
            return [self.router(engines, "--policy", "round_robin")]
        nodes = self.cluster(n, engines, "--policy", "round_robin")
        wanted = {m for e in engines for m in e.models}
        for r in nodes:
            wait_for(lambda: {m["id"] for m in r.get("/v1/models").json.get("data", [])} == wanted and
                     all(k["models"]["from"] == "engine" for k in r.admin("GET", "/replicas").json), "the lists")
        return nodes

    def unloaded(self, n):
        a, b = self.listing("m", "ad"), self.listing("m", "ad")
        routers = self.routers(n, [a, b])
        asking = Asking([r.port for r in routers], "ad")
        asking.wait(20)
        lists = a.lists
        a.models.remove("ad")
        wait_for(lambda: a.lists >= lists + n, "its list is read anew")
        a.clear()
        asking.wait(40)
        self.assertEqual(asking.stop(), [])
        self.assertEqual(a.requests, [])  # it is not asked any more
        self.assertGreater(sum(r.metric('retries_total{reason="model"}') for r in routers), 0)

    def test_an_adapter_is_unloaded_on_one_of_two(self):
        self.unloaded(1)

    def test_an_adapter_is_unloaded_with_three_routers(self):
        self.unloaded(3)

    def test_each_apis_unknown_model_error_is_recognised(self):
        chat = {"model": "ad", "messages": [message("user", "x")], "max_tokens": 1}
        flat = lambda name: dict(unknown(name)["error"], object="error")
        anthropic = lambda name: {"type": "error", "error": {"type": "not_found_error", "message": "model: " + name}}
        code = lambda name: {"error": {"message": "no", "code": "model_not_found"}}
        for path, body, said in ((CHAT, chat, unknown), (CHAT, dict(chat, stream=True), unknown), (CHAT, chat, flat),
                                 (CHAT, chat, code), ("/v1/messages", chat, anthropic),
                                 ("/v1/completions", {"model": "ad", "prompt": "x"}, unknown),
                                 ("/v1/responses", {"model": "ad", "input": "x"}, unknown),
                                 ("/v1/embeddings", {"model": "ad", "input": "x"}, unknown)):
            with self.subTest(path=path, said=said("x")):
                a, b = self.listing("m", "ad", said=said), self.listing("m", "ad")
                r = self.router([a, b], "--policy", "round_robin")
                a.models.remove("ad")
                for _ in range(4):
                    self.assertEqual(self.client(r).post(path, body).status, 200)
                r.stop()

    def test_an_adapter_of_sglang(self):
        a, b = self.engine(models=("base",)), self.engine(models=("base",))
        for e in (a, b):
            e.probes["/v1/models"] = lambda asked: asked.send(answer_json(
                {"object": "list", "data": [{"id": "base", "owned_by": "sglang"}]}))
        a.replies(answer_json(SGLANG_ADAPTER, 400))
        b.replies(answer_json({"choices": []}))
        r = self.router([a, b], "--policy", "round_robin")
        for more in ({"model": "base:ad"}, {"model": "base", "lora_path": "ad"}):
            for _ in range(4):
                got = self.client(r).post(CHAT, dict({"messages": [message("user", "x")]}, **more))
                self.assertEqual(got.status, 200, (more, got))

    def new_one(self, n):
        a, b = self.listing("m"), self.listing("m")
        routers = self.routers(n, [a, b])
        for i, name in enumerate(("first", "second")):
            (a, b)[i].models.append(name)
            for r in routers:
                wait_for(lambda: self.client(r).post(CHAT, {"model": name, "messages": []}).status == 200 or
                         self.fail("the new model is unknown"), "the new model")
        for r in routers:
            got = self.client(r).post(CHAT, {"model": "typo", "messages": []})
            self.assertEqual(got.status, 404, got)
            r.quiet()

    def test_a_new_adapter_is_served_at_once(self):
        self.new_one(1)

    def test_a_model_moves(self):
        a, b = self.listing("m", "ad"), self.listing("m")
        r = self.routers(1, [a, b])[0]
        a.models.remove("ad")
        b.models.append("ad")
        got = self.client(r).post(CHAT, {"model": "ad", "messages": []})
        self.assertEqual((got.status, got.get("x-grapevine-replica")), (200, b.name), got)

    def guessed(self, n, status):
        """One engine is up without a model list: it may serve any name, and knows none (like an ingress's default
        backend)."""
        a, b = self.engine(models=()), self.listing("m2")
        a.probes["/v1/models"] = lambda asked: asked.send(answer_json({"detail": "no"}, status))
        a.replies(answer_json({"detail": "no"}, 404))
        routers = [self.router([a, b], "--policy", "round_robin")] if n == 1 else \
            self.cluster(n, [a, b], "--policy", "round_robin")
        for r in routers:
            wait_for(lambda: [m["id"] for m in r.get("/v1/models").json.get("data", [])] == ["m2"], "the list")
        b.models[:] = ["m9"]
        for r in routers:
            got = self.client(r).post(CHAT, {"model": "m9", "messages": []})
            self.assertEqual((got.status, got.get("x-grapevine-replica")), (200, b.name), got)
        # Only that engine serves the model: its answer shows this, and lists are not read again.
        a.replies(answer_json({"choices": []}))
        for r in routers:
            self.assertEqual(self.client(r).post(CHAT, {"model": "own", "messages": []}).status, 200)
        lists = b.lists
        for _ in range(3):
            for r in routers:
                self.assertEqual(self.client(r).post(CHAT, {"model": "own", "messages": []}).status, 200)
        self.assertLessEqual(b.lists, lists + n)  # periodic ones
        self.told(routers, a, status)
        if status == 404:
            self.replaced(routers, a, b)

    def told(self, routers, a, status):
        """Operators see this once in the log, and below the table."""
        for r in routers:
            events = r.events("replica_models_unknown")
            said = gvctl("replicas", admin=r.admin_port)[1]
            if status == 404:
                self.assertEqual([(e["replica"], e["status"]) for e in events], [(a.name, 404)])
                self.assertIn("%s lists no models: GET /v1/models answered 404.\n" % a.name, said)
            else:
                self.assertEqual(events, [])
                self.assertNotIn("lists no models", said)

    def replaced(self, routers, a, b):
        """A page replaces the engine that answered for a model: the answer no longer counts."""
        a.replies(answer_json({"detail": "Not Found"}, 404))
        got = self.client(routers[0]).post(CHAT, {"model": "own", "messages": []})
        self.assertEqual((got.status, got.json), (404, {"detail": "Not Found"}), got)  # no replica has it
        b.models.append("own")
        for r in routers:
            got = self.client(r).post(CHAT, {"model": "own", "messages": []})
            self.assertEqual((got.status, got.get("x-grapevine-replica")), (200, b.name), got)
        b.stop()
        for r in routers:
            r.wait_event("replica_down")
            got = self.client(r).post(CHAT, {"model": "own", "messages": []})
            self.assertEqual(got.status, 503, got)

    def test_a_new_model_next_to_an_engine_without_a_list(self):
        self.guessed(1, 404)

    def test_a_new_model_next_to_an_engine_that_refuses_its_list(self):
        self.guessed(1, 401)

    def test_a_new_model_next_to_an_engine_without_a_list_three_routers(self):
        self.guessed(3, 404)

    def test_a_model_that_all_engines_unloaded_is_404(self):
        a, b = self.listing("m", "ad"), self.listing("m", "ad")
        r = self.routers(1, [a, b])[0]
        a.models.remove("ad")
        b.models.remove("ad")
        for _ in range(3):
            got = self.client(r).post(CHAT, {"model": "ad", "messages": []})
            self.assertEqual((got.status, got.json["error"]["type"]), (404, "NotFoundError"), got)
        r.quiet()


class Restarts(Clustered):
    """Another model behind an unchanged address."""

    def again(self, n):
        args = (*FAST, "--max-running", "64")
        a = self.sim("--model", "old", *args)
        b = self.sim("--model", "old", *args)
        nodes = [self.router([a.url, b.url], "--policy", "round_robin")] if n == 1 else \
            self.cluster(n, [a, b], "--policy", "round_robin")
        for r in nodes:
            wait_for(lambda: [len(k["models"]["names"]) for k in r.admin("GET", "/replicas").json] == [1, 1],
                     "the lists")
        asking = Asking([r.port for r in nodes], "old")
        asking.wait(30)
        a.stop()
        a = self.keep(Sim("--model", "new", *args, port=a.port))
        asking.wait(30)
        for r in nodes:
            got = self.client(r).post(CHAT, {"model": "new", "max_tokens": 2, "messages": [message("user", "x")]})
            self.assertEqual((got.status, got.get("x-grapevine-replica")), (200, a.name), got)
        asking.wait(60)
        self.assertEqual(asking.stop(), [])

    def test_another_model_behind_an_address_is_noticed(self):
        self.again(1)

    def test_another_model_behind_an_address_is_noticed_by_three_routers(self):
        self.again(3)


class Zero(Clustered):
    """Sources without an address."""

    def ask(self, r, model):
        return self.client(r).post(CHAT, {"model": model, "messages": []})

    def test_a_label_of_a_source_names_a_model(self):
        dns = self.keep(Dns({"zero.test": {"A": []}, "other.test": {"A": []}}))
        port = closed_port()
        r = self.router([self.engine()], "--replica-dns", "zero.test:%d#model=org/zero" % port, "--replica-dns",
                        "other.test:%d" % port, "--dns-server", dns.address, "--replica-dns-interval", "200ms")
        wait_for(lambda: all(s["age_s"] is not None for s in r.admin("GET", "/sources").json), "the sources")
        got = self.ask(r, "org/zero")
        self.assertEqual((got.status, got.get("retry-after"), got.get("x-grapevine-reason")),
                         (503, "1", "no_replica"), got)
        self.assertEqual(self.ask(r, "org/zero:adapter").status, 503)
        got = r.get("/v1/models/org/zero")
        self.assertEqual((got.status, got.get("retry-after"), got.get("x-grapevine-reason")),
                         (503, "1", "no_replica"), got)
        self.assertEqual(r.get("/v1/models/typo").status, 404)
        self.assertEqual([m["id"] for m in r.get("/v1/models").json["data"]], ["m"])  # the engines' list
        self.assertEqual(self.ask(r, "typo").status, 404)
        self.assertEqual(self.ask(r, "m").status, 200)

    def test_an_sglang_replica_gets_no_requests_for_a_model_of_a_label(self):
        """The SGLang serves any name in a request, except one that a label gives to another replica."""
        e = self.engine(models=("m",))
        e.probes["/v1/models"] = lambda asked: asked.send(answer_json(
            {"object": "list", "data": [{"id": "m", "owned_by": "sglang"}]}))
        r = self.router([e], "--replica-dns",
                        "zero.invalid:%d#model=zero#engine=vllm" % closed_port())
        for path in (CHAT, "/v1/messages"):
            for stream in (False, True):
                ask = lambda model: self.client(r).post(path, {"model": model, "stream": stream, "max_tokens": 1,
                                                               "messages": [message("user", "x")]})
                got = ask("zero")
                self.assertEqual((got.status, got.get("retry-after")), (503, "1"), got)
                self.assertEqual([ask(name).status for name in ("default", "m:adapter")], [200, 200])
        why = r.admin("POST", "/explain", json.dumps({"model": "zero", "messages": []}).encode()).json["left_out"]
        self.assertEqual([k["why"] for k in why], ["does not serve the model"])

    def test_labels_in_a_file_and_in_settings_name_models(self):
        path = os.path.join(self.folder.name, "replicas")
        with open(path, "w") as f:
            f.write("http://%s:%d#model=filed\n" % (HOST, closed_port()))
        r = self.router([self.engine(), "http://%s:%d#model=set" % (HOST, closed_port())], "--replica-file", path)
        r.wait_event("replica_down", 2)
        for model, status in (("filed", 503), ("set", 503), ("m", 200), ("typo", 404)):
            self.assertEqual(self.ask(r, model).status, status, model)

    def test_a_replica_that_never_listed_models_does_not_hide_404s(self):
        r = self.router([self.engine(), "http://%s:%d" % (HOST, closed_port())])
        r.wait_event("replica_down")
        self.assertEqual(self.ask(r, "m").status, 200)
        self.assertEqual(self.ask(r, "typo").status, 404)


if __name__ == "__main__":
    unittest.main()
