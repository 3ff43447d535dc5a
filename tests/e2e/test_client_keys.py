"""API keys of clients: permissions, limits, and the parts that engines see."""

import json
import os
import resource
import signal
import subprocess
import tempfile
import unittest

from lib import Case, answer_json, binary, chunk, request, wait_for
from test_daemon import run

CHAT = "/v1/chat/completions"
MESSAGES = "/v1/messages"
ENGINE_KEY = "sk-engines"
USAGE = {"prompt_tokens": 30, "completion_tokens": 12, "total_tokens": 42}
ANSWER = {"object": "chat.completion", "model": "m", "usage": USAGE,
          "choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}]}


def bearer(key):
    return [("Authorization", "Bearer " + key)]


def body(model="m", **more):
    return {"model": model, "messages": [{"role": "user", "content": "x"}], **more}


class KeysCase(Case):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.keys = os.path.join(self.folder, "keys")

    def new(self, name, *options):
        """A key of that name, as a user makes it."""
        code, out, err = run("gvctl", "key", "new", name, "--file", self.keys, *options)
        self.assertEqual((code, err), (0, ""))
        return out.strip()

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path + ".new", "w") as f:
            f.write(text)
        os.rename(path + ".new", path)  # no reader sees half of it
        return path

    def read(self):
        with open(self.keys) as f:
            return f.read()

    def start(self, engines, *args, **how):
        r = self.router(engines, "--client-keys-file", self.keys, *args, wait_up=False, **how)
        wait_for(lambda: r.admin("GET", "/readyz").status == 200, "ready")
        return r

    def engine_of(self, value=None):
        return self.engine().replies(answer_json(value or ANSWER))

    def quiet(self, r, *keys):
        """Nothing that the router says has a key in it."""
        said = "\n".join(r.lines) + r.admin("GET", "/metrics").body.decode() + \
            r.admin("GET", "/config").body.decode() + r.admin("GET", "/replicas").body.decode()
        for key in keys:
            self.assertNotIn(key, said)
            self.assertNotIn(key[3:], said) if key.startswith("gv-") else None


class Access(KeysCase):
    def test_requests_without_a_key_are_refused(self):
        e = self.engine_of()
        alice = self.new("alice")
        r = self.start([e])
        c = self.client(r)
        for headers in ((), bearer("gv-wrong"), bearer(alice[:-1]), bearer(alice + "x"), bearer(""),
                        [("Authorization", "Basic " + alice)], [("x-api-key", "sk-1")],
                        [("Authorization", alice)]):
            got = self.client(r).post(CHAT, body(), headers)
            self.assertEqual((got.status, got.get("www-authenticate")), (401, "Bearer"), headers)
            error = got.json["error"]
            self.assertEqual((error["type"], error["code"]), ("AuthenticationError", 401))
            self.assertEqual(got.get("x-grapevine-reason"), "client_key")
        got = self.client(r).post(MESSAGES, body(), [("x-api-key", "wrong")])
        self.assertEqual((got.status, got.json["type"], got.json["error"]["type"]),
                         (401, "error", "authentication_error"))
        for method, path in (("GET", "/v1/models"), ("GET", "/v1/models/m"), ("OPTIONS", "*"),
                             ("GET", "/nothing"), ("POST", "/sleep"), ("GET", "/version"),
                             ("OPTIONS", CHAT), ("GET", "/metrics"), ("GET", "/v1/responses/r1")):
            self.assertEqual(self.client(r).ask(method, path).status, 401, path)
        self.assertEqual(e.requests, [])
        self.assertEqual([c.ask("GET", path).status for path in ("/health", "/")], [200, 200])
        self.assertEqual(c.post(CHAT, body(), bearer(alice)).status, 200)
        self.assertEqual(len(e.requests), 1)
        refused = r.metrics()['grapevine_requests_invalid_total{reason="client_key"}']
        self.assertEqual(refused, 18)
        self.quiet(r, alice)

    def test_keys_are_read_from_each_usual_header(self):
        e = self.engine_of()
        key = self.new("alice")
        r = self.start([e])
        for headers in (bearer(key), [("authorization", "bearer  " + key)], [("x-api-key", key)],
                        [("api-key", key)], [("Authorization", "Basic eDp5"), ("X-Api-Key", key)]):
            got = self.client(r).post(CHAT, body(), headers + [("Connection", "x-api-key")])
            self.assertEqual(got.status, 200, headers)
            asked = e.requests[-1]
            for name in ("authorization", "x-api-key", "api-key"):
                self.assertIsNone(asked.get(name), headers)
        self.quiet(r, key)

    def test_the_engines_key_replaces_the_clients_key(self):
        e = self.engine_of()
        key = self.new("alice")
        engines = self.write("engine.key", ENGINE_KEY + "\n")
        r = self.start([e], "--replica-api-key-file", engines)
        for headers in (bearer(key), [("x-api-key", key)]):
            self.assertEqual(self.client(r).post(CHAT, body(), headers).status, 200)
            self.assertEqual(e.requests[-1].all("authorization"), ["Bearer " + ENGINE_KEY])
            self.assertIsNone(e.requests[-1].get("x-api-key"))
            self.assertNotIn(key.encode(), e.requests[-1].raw)
        for times, other in enumerate((ENGINE_KEY + "x", "sk-other"), 2):  # the first begins with the key before it
            self.write("engine.key", other + "\n")
            r.wait_event("replica_key_read", times)
            self.assertEqual(self.client(r).post(CHAT, body(), bearer(key)).status, 200)
            self.assertEqual(e.requests[-1].get("authorization"), "Bearer " + other)
        self.quiet(r, key, ENGINE_KEY)

    def test_without_client_keys_clients_keys_pass(self):
        e = self.engine_of()
        engines = self.write("engine.key", ENGINE_KEY + "\n")
        r = self.router([e], "--replica-api-key-file", engines)
        self.client(r).post(CHAT, body(), bearer("sk-mine"))
        self.assertEqual(e.requests[-1].get("authorization"), "Bearer sk-mine")
        self.client(r).post(CHAT, body())
        self.assertIsNone(e.requests[-1].get("authorization"))

    def test_client_keys_work_with_engines_that_require_a_key(self):
        key = self.new("alice")
        sim = self.sim("--speed-up", "50", "--output-tokens", "5", "--api-key", ENGINE_KEY,
                       "--model", "m1")
        engines = self.write("engine.key", ENGINE_KEY + "\n")
        r = self.start([sim.url], "--replica-api-key-file", engines)
        c = self.client(r)
        wait_for(lambda: c.ask("GET", "/v1/models", headers=bearer(key)).json["data"], "models")
        self.assertEqual(c.post(CHAT, body("m1"), bearer(key)).status, 200)
        self.assertEqual(self.client(r).post(CHAT, body("m1"), bearer(ENGINE_KEY)).status, 401)

    def test_key_names_are_logged_and_counted(self):
        e = self.engine_of()
        alice, bob = self.new("alice"), self.new("bob@team")
        r = self.start([e], "--access-log", "all")
        for key, times in ((alice, 2), (bob, 1)):
            for _ in range(times):
                self.client(r).post(CHAT, body(), bearer(key))
        wait_for(lambda: len(r.events("request")) >= 3, "the log")
        self.assertEqual([x["key"] for x in r.events("request")], ["alice", "alice", "bob@team"])
        m = r.metrics()
        self.assertEqual(m["grapevine_client_keys"], 2)
        self.assertEqual(m['grapevine_key_requests_total{key="alice"}'], 2)
        self.assertEqual(m['grapevine_key_tokens_total{key="alice",kind="prompt"}'], 60)
        self.assertEqual(m['grapevine_key_tokens_total{key="bob@team",kind="completion"}'], 12)
        self.assertEqual(m['grapevine_key_in_flight{key="alice"}'], 0)
        self.quiet(r, alice, bob)


class KeysFile(KeysCase):
    def test_changes_of_the_keys_file_take_effect(self):
        e = self.engine_of()
        alice = self.new("alice")
        first = self.read()
        r = self.start([e])
        bob = self.new("bob")
        c = self.client(r)
        wait_for(lambda: c.ask("GET", "/v1/models", headers=bearer(bob)).status == 200,
                 "the key of bob", step=0.05)
        good = self.read()
        self.write("keys", good + "carol gv-the-key-itself\n")
        wrong = r.wait_event("client_keys_refused")
        self.assertEqual(wrong["level"], "error")
        self.assertIn("line 3: want a hash", wrong["error"])
        self.assertNotIn("gv-the-key", "\n".join(r.lines))
        self.assertEqual(r.metric("client_keys_file_refused"), 1)
        said = run("gvctl", "--admin", "http://127.0.0.1:%d" % r.admin_port, "status")[1]
        self.assertIn("client keys  refused: the file cannot be used, and the previous one stays in force (gvctl events)", said)
        self.assertEqual(self.client(r).post(CHAT, body(), bearer(alice)).status, 200)
        os.remove(self.keys)
        r.wait_event("client_keys_refused", 2)
        self.assertEqual(self.client(r).post(CHAT, body(), bearer(bob)).status, 200)
        self.write("keys", "".join(x for x in good.splitlines(True) if x.startswith("bob")))
        r.wait_event("client_keys_read", 3)
        self.assertEqual(len(r.events("client_keys_refused")), 2)
        self.assertEqual(self.client(r).post(CHAT, body(), bearer(alice)).status, 401)
        self.assertEqual(self.client(r).post(CHAT, body(), bearer(bob)).status, 200)
        self.write("keys", first)  # a file that was read once is new again
        r.wait_event("client_keys_read", 4)
        self.assertEqual(self.client(r).post(CHAT, body(), bearer(alice)).status, 200)
        self.assertEqual(self.client(r).post(CHAT, body(), bearer(bob)).status, 401)

    def test_a_missing_keys_file_is_logged_in_whole_sentences(self):
        """"Clients' keys were read:  of  names." was what an operator read."""
        self.new("alice")
        r = self.start([self.engine_of()])
        good = self.read()
        os.remove(self.keys)
        r.wait_event("client_keys_refused")
        self.write("keys", good)
        back = r.wait_event("client_keys_read", 2)
        self.assertEqual((back["keys"], back["names"], back["changed"]), (1, 1, False))
        self.assertEqual(r.metric("client_keys_file_refused"), 0)
        said = run("gvctl", "--admin", "http://127.0.0.1:%d" % r.admin_port, "status")[1]
        self.assertNotIn("client keys  refused", said)
        said = [e["text"] for e in r.admin("GET", "/events").json["events"] if e["event"] == "client_keys_read"]
        self.assertEqual(set(said), {"Loaded 1 client key for 1 name."})

    def test_a_bad_keys_file_stops_the_start(self):
        for text, wrong in (("", "has no key in it"), ("# nothing\n", "has no key in it"),
                            ("a b c\n", "line 1: want a hash"),
                            ("\n\nalice!\n", "line 3: want a name"),
                            ("alice blake2b:%s x=1\n" % ("0" * 64), "want only models=")):
            path = self.write("keys", text)
            code, out, err = run("grapevine", "--check-config", "--replica", "http://127.0.0.1:1",
                                 "--client-keys-file", path)
            self.assertEqual(code, 2, out)
            self.assertIn(wrong, err)
            self.assertIn('client-keys-file "%s"' % path, err)
        code, _, err = run("grapevine", "--check-config", "--replica", "http://127.0.0.1:1",
                           "--client-keys-file", path + "x")
        self.assertEqual((code, "No such file" in err), (2, True))

    def test_gvctl_makes_keys(self):
        code, out, err = run("gvctl", "key", "new", "alice", "--models", "m,llama-*",
                             "--requests-per-minute", "60", "--tokens-per-minute", "9000",
                             "--in-flight", "4")
        self.assertEqual((code, err), (0, ""))
        key, line = out.splitlines()
        self.assertRegex(key, r"^gv-[\w-]{43}$")
        self.assertRegex(line, r"^alice blake2b:[0-9a-f]{64} models=m,llama-\* "
                               r"requests-per-minute=60 tokens-per-minute=9000 in-flight=4$")
        made = subprocess.run(["b2sum", "-l", "256"], input=key.encode(), capture_output=True)
        self.assertIn("blake2b:" + made.stdout.decode().split()[0], line)
        first = self.new("alice", "--in-flight", "4")
        self.assertEqual(os.stat(self.keys).st_mode & 0o777, 0o600)
        before = self.read()
        code, out, err = run("gvctl", "key", "new", "alice", "--file", self.keys)  # by mistake, or for a rotation?
        self.assertEqual((code, out, "already has a key for alice. To rotate it, make a second one with --add" in err), (1, "", True), err)
        self.assertEqual(self.read(), before)
        self.assertNotEqual(first, self.new("alice", "--add"))  # two keys of one name
        for args, wrong in ((("alice", "--add", "--in-flight", "5"), "write its options only there"),
                            (("a b",), "want a name"), (("x", "--in-flight", "0"), "want a number"),
                            (("x", "--models", "a,,b"), "want models=")):
            before = self.read()
            code, out, err = run("gvctl", "key", "new", *args, "--file", self.keys)
            self.assertNotEqual(code, 0)
            self.assertEqual((out, wrong in err), ("", True), err)
            self.assertEqual(self.read(), before)
        for args, wrong in (((), "key takes one argument, new|list|revoke"), (("old", "x"), "give one of new, list, revoke"),
                            (("new",), "the name is missing"), (("list",), "give --file"), (("revoke", "x"), "give --file"),
                            (("new", "x", "--wait"), "key has no option --wait")):
            code, out, err = run("gvctl", "key", *args)
            self.assertEqual((code, out, wrong in err), (2, "", True), err)

    def key(self, *args):
        code, out, err = run("gvctl", "key", *args, "--file", self.keys)
        return code, out, err

    def test_a_rotation_with_gvctl(self):
        """The old key is revoked by its hash; the name's options stay, and so do comments and other names."""
        engine = self.engine().replies(answer_json(ANSWER))
        old = self.new("alice", "--models", "m", "--in-flight", "4")
        with open(self.keys, "a") as f:
            f.write("# bob is the nightly batch\n")
        self.new("bob")
        new = self.new("alice", "--add")
        rows = json.loads(self.key("list", "-o", "json")[1])
        self.assertEqual([(r["name"], r["models"], r["in_flight"]) for r in rows],
                         [("alice", "m", 4), ("bob", "", 0), ("alice", "m", 4)])  # limits are a name's, not a key's
        table = [line.split() for line in self.key("list")[1].splitlines()[1:]]
        self.assertEqual([line[:2] for line in table], [[r["name"], r["hash"][:8]] for r in rows])
        self.assertEqual([line[4] for line in table], ["4", "-", "4"])
        r = self.start([engine])
        mode = os.stat(self.keys).st_mode
        code, out, err = self.key("revoke", "alice", "--hash", rows[0]["hash"][:8])
        self.assertEqual((code, err), (0, ""))
        self.assertIn("Revoked 1 key of alice", out)
        self.assertEqual(os.stat(self.keys).st_mode, mode)
        rows = json.loads(self.key("list", "-o", "json")[1])
        self.assertEqual([(r["name"], r["models"], r["in_flight"]) for r in rows], [("bob", "", 0), ("alice", "m", 4)])
        self.assertIn("# bob is the nightly batch\n", self.read())
        wait_for(lambda: self.client(r).post(CHAT, body(), bearer(old)).status == 401, "the old key is refused")
        self.assertEqual(self.client(r).post(CHAT, body(), bearer(new)).status, 200)
        before = self.read()
        for args, wrong in ((("revoke", "carol"), "no key of that name"),
                            (("revoke", "bob", "--hash", "x"), "no key of that name has this hash")):
            code, out, err = self.key(*args)
            self.assertEqual((code, out, wrong in err), (1, "", True), err)
        self.assertEqual(self.key("revoke", "bob")[0], 0)
        before = self.read()
        code, out, err = self.key("revoke", "alice")  # routers would go on with it
        self.assertEqual((code, out, "this is the last key" in err), (1, "", True), err)
        self.assertEqual(self.read(), before)

    def test_a_full_disk_leaves_no_partial_line(self):
        """Every router then refused the file, and the error said only that the file exists."""
        self.new("alice")
        before = self.read()

        def full():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10,) * 2)
        p = subprocess.run([binary("gvctl"), "key", "new", "bob", "--file", self.keys], capture_output=True, text=True,
                           preexec_fn=full)
        self.assertEqual((p.returncode, p.stdout), (1, ""))
        self.assertIn("No space left", p.stderr)
        self.assertEqual(self.read(), before)

    def test_gvctl_key_accepts_the_options_of_all_commands(self):
        """An alias with --admin and --token-file got `unrecognized option`."""
        common = ("--admin", "https://nowhere:1", "--insecure", "--timeout", "3")
        code, out, err = run("gvctl", *common, "key", "new", "alice", "--in-flight", "4", "-o", "json")
        self.assertEqual((code, err), (0, ""))
        made = json.loads(out)
        self.assertEqual((made["name"], made["line"].split()[0], made["line"].split()[2]), ("alice", "alice", "in-flight=4"))
        self.assertRegex(made["key"], r"^gv-[\w-]{43}$")
        code, out, err = run("gvctl", "key", "-o", "yaml", "new", "alice", *common)
        self.assertEqual((code, err, [line.split(":")[0] for line in out.splitlines()]), (0, "", ["name", "key", "line"]))


class Limits(KeysCase):
    def ask(self, r, key, value=None, path=CHAT):
        return self.client(r).post(path, value or body(), bearer(key))

    def test_keys_are_limited_to_their_models(self):
        e = self.engine(models=("m", "secret", "llama-7b")).replies(answer_json(ANSWER))
        key, other = self.new("alice", "--models", "m,llama-*"), self.new("bob")
        r = self.start([e])
        c = self.client(r)
        wait_for(lambda: len(c.ask("GET", "/v1/models", headers=bearer(other)).json["data"]) == 3,
                 "the models")
        got = c.ask("GET", "/v1/models", headers=bearer(key)).json
        self.assertEqual([m["id"] for m in got["data"]], ["m", "llama-7b"])
        self.assertEqual(c.ask("GET", "/v1/models/m", headers=bearer(key)).status, 200)
        self.assertEqual(c.ask("GET", "/v1/models/secret", headers=bearer(key)).status, 404)
        for model, status in (("m", 200), ("llama-7b", 200), ("secret", 404), ("m2", 404)):
            self.assertEqual(self.ask(r, key, body(model)).status, status, model)
        self.assertEqual(self.ask(r, other, body("secret")).status, 200)
        got = self.ask(r, key, body("secret"))
        self.assertEqual((got.json["error"]["param"], got.get("x-grapevine-reason"),
                          got.get("x-grapevine-limit")), ("model", "key_model", "models"))
        got = self.ask(r, key, body("secret"), MESSAGES)
        self.assertEqual(got.json["error"]["type"], "not_found_error")
        label = '{key="alice",limit="models"}'
        self.assertEqual(r.metrics()["grapevine_key_refused_total" + label], 4)
        self.assertEqual({json.loads(x.body)["model"] for x in e.requests},
                         {"m", "llama-7b", "secret"})

    def test_a_key_with_only_refusals_is_named_in_metrics(self):
        """Such refusals counted among those of keys beyond the first thousand."""
        key = self.new("alice", "--models", "m")
        r = self.start([self.engine()])
        self.assertEqual(self.ask(r, key, body("secret")).status, 404)
        self.assertEqual(r.metrics()['grapevine_key_refused_total{key="alice",limit="models"}'], 1)

    def test_requests_a_minute(self):
        e = self.engine_of()
        key, other = self.new("alice", "--requests-per-minute", "3"), self.new("bob")
        r = self.start([e])
        c = self.client(r)
        for _ in range(3):
            self.assertEqual(c.post(CHAT, body(), bearer(key)).status, 200)
        got = c.post(CHAT, body(), bearer(key))  # on the same connection: it stays
        self.assertEqual((got.status, got.get("x-grapevine-reason"), got.get("x-grapevine-limit")),
                         (429, "key_limit", "requests-per-minute"))
        self.assertEqual(got.json["error"]["type"], "RateLimitError")
        self.assertIn("Rate limit reached for the API key `alice`", got.json["error"]["message"])
        self.assertIn(int(got.get("retry-after")), range(1, 121))
        got = c.post(MESSAGES, body(), [("x-api-key", key)])
        self.assertEqual((got.status, got.json["error"]["type"]), (429, "rate_limit_error"))
        self.assertEqual(c.post(CHAT, body(), bearer(other)).status, 200)
        self.assertEqual(len(e.requests), 4)

    def test_tokens_a_minute(self):
        key = self.new("alice", "--tokens-per-minute", "100")
        stream = [{"choices": [{"delta": {"content": "a"}}]}, {"choices": [], "usage": USAGE}]

        def handler(asked):
            asked.read_body()
            asked.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                       b"Transfer-Encoding: chunked\r\n\r\n" +
                       b"".join(chunk(b"data: %s\n\n" % json.dumps(x).encode()) for x in stream) +
                       chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        e = self.engine()
        e.handler = handler
        r = self.start([e])
        for status in (200, 200, 200, 429):  # 42 tokens each
            got = self.ask(r, key, body(stream=True))
            self.assertEqual(got.status, status)
        self.assertEqual(got.get("x-grapevine-limit"), "tokens-per-minute")

    def test_tokens_are_counted_on_every_path(self):
        """Answers that were not read counted nothing: by path, or as their client had them compressed."""
        e = self.engine_of()
        key = self.new("alice", "--tokens-per-minute", "100")
        r = self.start([e])
        label = 'grapevine_key_tokens_total{key="alice",kind="completion"}'
        zipped = bearer(key) + [("Accept-Encoding", "gzip")]
        for status, path in ((200, "/api/chat"), (200, "/invocations"), (200, CHAT), (429, CHAT)):
            got = self.client(r).post(path, body(), zipped)
            self.assertEqual(got.status, status, path)
            self.assertIsNone(e.requests[-1].get("accept-encoding"))
        self.assertEqual(r.metrics()[label], 36)

    def test_background_requests_are_refused_to_limited_keys(self):
        """Background requests are refused: the answer came at once, but the request used uncounted tokens and a place
        at the engine."""
        e = self.engine_of({"id": "resp_1", "status": "queued", "usage": None})
        alice = self.new("alice", "--tokens-per-minute", "100")
        bob = self.new("bob", "--in-flight", "1")
        r = self.start([e])
        for key, limit in ((alice, "tokens-per-minute"), (bob, "in-flight")):
            asked = {"model": "m", "input": "x", "background": True}
            got = self.ask(r, key, asked, "/v1/responses")
            self.assertEqual((got.status, got.get("x-grapevine-reason"), got.get("x-grapevine-limit"),
                              got.json["error"]["param"]), (403, "key_limit", limit, "background"))
            asked["background"] = False
            self.assertEqual(self.ask(r, key, asked, "/v1/responses").status, 200)

    def test_requests_in_flight_are_limited(self):
        key = self.new("alice", "--in-flight", "2")
        e = self.engine()
        held = []
        e.handler = held.append
        r = self.start([e])
        clients = [self.client(r) for _ in range(2)]
        for c in clients:
            c.send(request("POST", CHAT, json.dumps(body()).encode(), bearer(key)))
        e.wait_request(2)
        wait_for(lambda: len(held) == 2, "both at the engine")
        got = self.ask(r, key)
        self.assertEqual((got.status, got.get("retry-after"), got.get("x-grapevine-limit")),
                         (429, "1", "in-flight"))
        for asked in held:
            asked.read_body()
            asked.send(answer_json(ANSWER))
        for c in clients:
            self.assertEqual(c.read("POST").status, 200)
        clients[0].send(request("POST", CHAT, json.dumps(body()).encode(), bearer(key)))
        wait_for(lambda: len(held) == 3, "the next one at the engine")
        clients[0].close()  # a client that leaves frees its place
        wait_for(lambda: r.metrics()['grapevine_key_in_flight{key="alice"}'] == 0, "its place")


if __name__ == "__main__":
    unittest.main()
