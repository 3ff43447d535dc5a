"""The destination of each path, and the router's own answers."""

import json
import unittest

from lib import SSE_HEAD, Case, Engine, Router, answer, answer_json, chunk

CHAT = "/v1/chat/completions"
JSON = [("Content-Type", "application/json")]


def echo(asked):
    asked.read_body()
    asked.send(answer(200, asked.path.encode()))


class Control(Case):
    """Paths that control an engine are closed to clients, in any disguise."""

    PATHS = ("/sleep", "/wake_up", "/is_sleeping", "/pause", "/resume", "/reset_prefix_cache",
             "/reset_mm_cache", "/v1/load_lora_adapter", "/v1/unload_lora_adapter",
             "/collective_rpc", "/server_info", "/start_profile", "/stop_profile",
             "/scale_elastic_ep", "/flush_cache", "/get_server_info", "/update_weights",
             "/update_weights_from_disk", "/init_weights_update_group", "/abort_request",
             "/release_memory_occupation", "/resume_memory_occupation", "/open_session",
             "/load_lora_adapter", "/abort_requests", "/configure_logging")
    DISGUISES = ("/%73leep", "/SLEEP", "//sleep", "/./sleep", "/a/../sleep", "/sleep/", "/sleep;x",
                 "/v1//sleep", "/%2573leep", "/x/%2e%2e/sleep", "/sleep%00", "/sleep%20",
                 "/sleep%0a", "/..%2fsleep", "/sleep%3fx", "/prefix/reset_prefix_cache",
                 "/sleep?level=1", "http://a/sleep")

    def test_control_paths_are_refused_with_every_setting_of_other_paths(self):
        e = self.engine()
        for setting in ("pass", "refuse"):
            r = self.router([e], "--other-paths", setting)
            c = self.client(r)
            for path in self.PATHS + (self.DISGUISES if setting == "pass" else ()):
                for method in ("GET", "POST", "PUT", "OPTIONS", "HEAD"):
                    with self.subTest(path=path, method=method):
                        got = c.ask(method, path)
                        self.assertIn(got.status, (400, 403))
                        if got.get("connection") == "close":
                            c = self.client(r)
        self.assertEqual([a.start for a in e.requests], [])

    def test_control_paths_pass_if_an_operator_allows_them(self):
        e = self.engine()
        e.handler = echo
        r = self.router([e], "--engine-control-paths", "pass")
        self.assertEqual(self.client(r).ask("POST", "/sleep?level=1").status, 200)
        self.assertEqual(e.requests[0].target, "/sleep?level=1")


class Others(Case):
    def test_unknown_paths_are_refused_by_default(self):
        e = self.engine()
        r = self.router([e])
        c = self.client(r)
        for path in ("//", "/docs", "/v2/chat/completions", "/v1/chat", "/metrics", "/load",
                     "/v1/chat/completions//", "/openapi.json"):
            got = c.ask("GET", path)
            self.assertEqual((got.status, got.json), (404, {"detail": "Not Found"}), path)
        self.assertEqual(e.requests, [])

    def test_unknown_paths_pass_if_configured(self):
        e = self.engine()
        e.handler = echo
        r = self.router([e], "--other-paths", "pass")
        c = self.client(r)
        for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            self.assertEqual(c.ask(method, "/docs", b"x").body, b"/docs", method)
            self.assertEqual(e.requests[-1].method, method)

    def test_every_client_path_reaches_the_engine_with_its_body(self):
        e = self.engine()
        e.handler = lambda asked: asked.send(answer(200, asked.read_body()))
        r = self.router([e])
        c = self.client(r)
        for path in ("/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses",
                     "/v1/embeddings", "/v1/score", "/v1/rerank", "/rerank", "/v2/rerank",
                     "/score", "/tokenize", "/detokenize", "/pooling", "/classify", "/generate",
                     "/v1/messages/count_tokens", "/inference/v1/generate", "/v2/embed",
                     "/invocations"):
            body = json.dumps({"model": "m", "prompt": "p", "path": path}).encode()
            got = c.ask("POST", path, body, JSON)
            self.assertEqual((got.status, got.body), (200, body), path)
            self.assertEqual(e.requests[-1].path, path)
        for path in ("/version",):
            self.assertEqual(c.ask("GET", path).status, 200)

    def test_a_body_that_is_not_json_passes_to_the_engine(self):
        e = self.engine()
        e.handler = lambda asked: asked.send(answer(422, asked.read_body()))
        r = self.router([e])
        c = self.client(r)
        bad = (b"not json", b"{", b"[]", b'{"model":', b"\xff\xfe", b'{"a":1}{"b":2}', b"null",
               b'{"model":"m","messages":"' + b"\\ud800" * 10 + b'"}', b"[" * 5000)
        for body in bad:
            got = c.ask("POST", CHAT, body, JSON)
            self.assertEqual((got.status, got.body), (422, body))
        self.assertGreater(r.metric("not_understood_total"), 0)
        r.quiet()

    def test_error_bodies_of_the_engine_pass_unchanged(self):
        e = self.engine()
        r = self.router([e])
        c = self.client(r)
        for status in (400, 401, 404, 413, 422, 429, 500):
            body = json.dumps({"error": {"message": "\u00e4 %d" % status, "code": status}}).encode()
            e.replies(answer(status, body, [("Content-Type", "application/json"),
                                            ("X-Engine", "1")], "Its Own Words"))
            got = c.ask("POST", CHAT, b'{"model":"m","messages":[]}', JSON)
            self.assertEqual(got.start, "HTTP/1.1 %d Its Own Words" % status)
            self.assertEqual((got.body, got.get("x-engine")), (body, "1"))


class Models(Case):
    """Replicas that serve different models."""

    @classmethod
    def set_up(cls):
        cls.a = cls.shared(Engine(models=("big", "both")))
        cls.b = cls.shared(Engine(models=("small", "both", "org/name")))
        cls.r = cls.shared(Router([cls.a, cls.b]))

    def setUp(self):
        super().setUp()
        for e in (self.a, self.b):
            e.clear()
            e.handler = echo
        self.c = self.client(self.r)

    def ask(self, model, path=CHAT):
        return self.c.post(path, {"model": model, "messages": [{"role": "user", "content": "x"}],
                                  "input": "x", "prompt": "x"})

    def test_a_request_goes_to_a_replica_that_serves_its_model(self):
        for path in (CHAT, "/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/messages"):
            for _ in range(4):
                self.assertEqual(self.ask("big", path).get("x-grapevine-replica"), self.a.name)
                self.assertEqual(self.ask("small", path).get("x-grapevine-replica"), self.b.name)
                self.assertEqual(self.ask("org/name", path).get("x-grapevine-replica"),
                                 self.b.name)

    def test_the_model_is_found_anywhere_in_the_body(self):
        long = json.dumps([{"role": "user", "content": "word " * 20000}])
        for body in ('{"model":"small","messages":%s}' % long,
                     '{"messages":%s,"model":"small"}' % long,
                     '{"messages":[],"m\\u006fdel":"sm\\u0061ll"}'):
            got = self.c.ask("POST", CHAT, body.encode(), JSON)
            self.assertEqual(got.get("x-grapevine-replica"), self.b.name)

    def multipart(self, fields):
        out = b""
        for name, value, file in fields:
            out += b"--frontier\r\nContent-Disposition: form-data; name=\"" + name + b"\""
            out += b"; filename=\"a.wav\"\r\nContent-Type: audio/wav" if file else b""
            out += b"\r\n\r\n" + value + b"\r\n"
        return out + b"--frontier--\r\n"

    def test_a_multipart_request_goes_by_its_model_field(self):
        kind = [("Content-Type", "multipart/form-data; boundary=frontier")]
        for size in (10, 70000, 200000):
            for first in (True, False):
                model, file = (b"model", b"small", False), (b"file", b"\0" * size, True)
                body = self.multipart([model, file] if first else [file, model])
                for path in ("/v1/audio/transcriptions", "/v1/audio/translations"):
                    got = self.c.ask("POST", path, body, kind)
                    self.assertEqual((got.status, got.get("x-grapevine-replica")),
                                     (200, self.b.name))
                    self.assertEqual(self.b.requests[-1].body, body)

    def test_a_model_field_across_two_buffers_is_found(self):
        """Every position of the field around the border of the buffers that hold a body."""
        kind = [("Content-Type", "multipart/form-data; boundary=frontier")]
        for size in range(65536 - 330, 65536 - 80, 7):
            body = self.multipart([(b"file", b"\0" * size, True), (b"model", b"small", False)])
            got = self.c.ask("POST", "/v1/audio/transcriptions", body, kind)
            self.assertEqual((got.status, got.get("x-grapevine-replica")), (200, self.b.name), size)
        got = self.c.ask("POST", "/v1/audio/transcriptions",
                         self.multipart([(b"model", b"none", False)]), kind)
        self.assertEqual(got.status, 404)


class Stored(Case):
    """/v1/responses with several replicas: an answer that one replica keeps is requested from it."""

    def setUp(self):
        super().setUp()
        self.engines = [self.engine() for _ in range(4)]
        self.store = {e.port: {} for e in self.engines}
        self.count = 0
        for e in self.engines:
            e.handler = self.handler_of(e)
        self.r = self.router(self.engines, "--policy", "round_robin")
        self.c = self.client(self.r)

    def handler_of(self, engine):
        store = self.store[engine.port]

        def handler(asked):
            body = asked.read_body()
            if asked.method == "POST" and asked.path == "/v1/responses":
                value = json.loads(body)
                previous = value.get("previous_response_id")
                if previous is not None and previous not in store:
                    asked.send(answer_json({"error": "no " + previous}, 404))
                    return
                self.count += 1
                made = {"id": "resp_%d" % self.count, "object": "response", "status": "completed",
                        "output": [{"type": "message", "content": [
                            {"type": "output_text", "text": "hi"}]}],
                        "usage": {"input_tokens": 3, "output_tokens": 1}}
                store[made["id"]] = made
                if value.get("stream"):
                    events = [{"type": "response.created", "response": dict(made, output=[])},
                              {"type": "response.output_text.delta", "delta": "hi"},
                              {"type": "response.completed", "response": made}]
                    asked.send(SSE_HEAD + b"".join(chunk(
                        b"event: %s\ndata: %s\n\n" % (x["type"].encode(), json.dumps(x).encode()))
                        for x in events) + b"0\r\n\r\n")
                else:
                    asked.send(answer_json(made))
                return
            name = asked.path.split("/")[3]
            if name not in store:
                asked.send(answer_json({"error": {"message": "not here"}}, 404))
            elif asked.method == "DELETE":
                del store[name]
                asked.send(answer_json({"deleted": True}))
            else:
                asked.send(answer_json(store[name]))
        return handler

    def make(self, **more):
        got = self.c.post("/v1/responses", dict({"model": "m", "input": "hi"}, **more))
        self.assertEqual(got.status, 200, got)
        return "resp_%d" % self.count, got.get("x-grapevine-replica")

    def test_a_stored_response_is_requested_from_its_maker(self):
        made = [self.make(stream=bool(i % 2)) for i in range(12)]
        self.assertEqual(len({where for _, where in made}), 4)
        before = sum(len(e.requests) for e in self.engines)
        for name, where in made:
            for path in ("", "/input_items"):
                got = self.c.ask("GET", "/v1/responses/" + name + path)
                self.assertEqual((got.status, got.get("x-grapevine-replica")), (200, where))
        self.assertEqual(sum(len(e.requests) for e in self.engines), before + 24)
        for name, where in made:
            got = self.c.ask("DELETE", "/v1/responses/" + name)
            self.assertEqual((got.status, got.get("x-grapevine-replica")), (200, where))

    def test_a_request_that_continues_a_response_goes_to_its_maker(self):
        for stream in (False, True):
            name, where = self.make(stream=stream)
            for _ in range(6):
                before = name
                name, again = self.make(previous_response_id=before, stream=stream)
                self.assertEqual(again, where)


class Forms(Case):
    """The APIs pass unchanged."""

    def test_anthropic_messages_and_their_stream(self):
        e = self.engine()
        stream = (b'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1",'
                  b'"usage":{"input_tokens":10,"cache_read_input_tokens":4,"output_tokens":1}}}\n\n'
                  b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
                  b'"delta":{"type":"text_delta","text":"hi"}}\n\n'
                  b'event: message_stop\ndata: {"type":"message_stop"}\n\n')
        e.replies(SSE_HEAD + chunk(stream) + b"0\r\n\r\n")
        r = self.router([e])
        body = {"model": "m", "max_tokens": 5, "stream": True, "system": "s", "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]}]}
        got = self.client(r).post("/v1/messages", body, [("x-api-key", "k"),
                                                         ("anthropic-version", "2023-06-01")])
        self.assertEqual(got.body, stream)
        asked = e.requests[0]
        self.assertEqual((asked.get("x-api-key"), asked.get("anthropic-version")),
                         ("k", "2023-06-01"))
        self.assertEqual(asked.json, body)
        r.quiet()


if __name__ == "__main__":
    unittest.main()
