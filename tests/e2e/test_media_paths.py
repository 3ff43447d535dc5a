"""Audio, images, videos and paths that only some engines have: by the model that their body names, as JSON or as a form.
A video or an image that an engine keeps is requested from that engine."""

import json
import unittest

from lib import Case, Engine, Router, answer, answer_json

MEDIA = ("/v1/audio/speech", "/v1/audio/speech/batch", "/v1/audio/generate", "/v1/audio/transcriptions",
         "/v1/audio/translations", "/v1/images/generations", "/v1/images/edits", "/v1/images/variations",
         "/v1/videos/sync", "/v1/videos")
JSON_ONLY = ("/v1/moderations", "/v1/decisions", "/v1/rerank", "/v1/score", "/pooling", "/classify", "/tokenize",
             "/detokenize", "/v1/embeddings", "/generative_scoring", "/cohere/v2/chat")
JSON = [("Content-Type", "application/json; charset=utf-8")]
FORM = [("Content-Type", "multipart/form-data; boundary=b")]
OTHER_TYPES = ("application/x-www-form-urlencoded", "text/plain;charset=UTF-8", "application/vnd.api+json", None)


def form(model):
    return (b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n' + bytes(1000) +
            b'\r\n--b\r\nContent-Disposition: form-data; name="model"\r\n\r\n' + model.encode() + b"\r\n--b--\r\n")


def text(model):
    return json.dumps({"prompt": "a cat", "input": "hello", "model": model}).encode()


class Maker(Engine):
    """Makes videos and images, and has those that it made."""

    def __init__(self, *stored, **how):
        super().__init__(**how)
        self.stored = set(stored)
        self.handler = self.serve

    def serve(self, asked):
        asked.read_body()
        parts = asked.path.split("/")
        if asked.method == "POST":
            made = "video_%s_%d" % (self.models[0], len(self.stored))
            self.stored.add(made)
            asked.send(answer_json({"id": made, "object": "video", "status": "queued", "error": None}))
        elif len(parts) > 3 and parts[3] in self.stored:
            if asked.method == "DELETE":
                self.stored.discard(parts[3])
            asked.send(answer(200, b"\0" * 70000 if parts[-1] == "content" else b"{}"))
        elif len(parts) == 3:
            asked.send(answer_json({"object": "list", "data": [{"id": i} for i in self.stored]}))
        else:
            asked.send(answer_json({"detail": "Video not found"}, 404))


class MediaPaths(Case):
    @classmethod
    def set_up(cls):
        cls.one, cls.other = cls.shared(Engine(models=["one"])), cls.shared(Engine(models=["other"]))
        cls.r = cls.shared(Router([cls.one, cls.other], "--other-paths", "pass"))

    def setUp(self):
        super().setUp()
        for e in (self.one, self.other):
            e.clear()
            e.replies(answer(200, b"ok"))

    def check(self, path, headers, body, sent=None):
        """Four times each: by chance one of 256 would pass."""
        for e in (self.one, self.other) * 4:
            made = body(e.models[0])
            got = self.client(self.r).ask("POST", path, made, headers)
            self.assertEqual((got.status, got.get("x-grapevine-replica")), (200, e.name), (path, headers))
            self.assertEqual((e.requests[-1].target, e.requests[-1].body), (sent or path, made))

    def test_json_and_forms_go_to_their_model(self):
        for path in MEDIA:
            self.check(path, JSON, text)
            self.check(path, FORM, form)
        for path in JSON_ONLY:
            self.check(path, JSON, text)

    def test_unknown_paths_go_to_their_model_too(self):
        for path in ("/v1/anything", "/predict", "/v1/videos/edits"):
            self.check(path, JSON, text)
            self.check(path, FORM, form)
            self.check(path, JSON, lambda model: b'{"model": "%s", "x": "%s"}' % (model.encode(), b"y" * 900000))
        got = self.client(self.r).ask("POST", "/predict", text("third"), JSON)
        self.assertEqual((got.status, got.get("x-grapevine-reason")), (404, "model"))
        for headers, body in ((JSON, b"[1, 2]"), ([], b"\0" * 300000), (JSON, b'{"prompt": "no model"}')):
            self.assertEqual(self.client(self.r).ask("POST", "/predict", body, headers).status, 200)

    def test_a_json_object_is_read_with_any_content_type(self):
        for type in OTHER_TYPES:
            self.check("/predict", [("Content-Type", type)] if type else [], lambda model: b"\r\n " + text(model))

    def test_without_the_setting_unknown_paths_are_404(self):
        r = self.router([self.one])
        for path in ("/predict", "/v1/images/nothing", "/v1/videos/a/b"):
            self.assertEqual(self.client(r).ask("POST", path, text("one"), JSON).status, 404)
        got = self.client(r).ask("POST", "/v1/images/generations", text("third"), JSON)
        self.assertEqual((got.status, json.loads(got.body)["error"]["param"]), (404, "model"))

    def test_a_trailing_slash_is_dropped_on_known_paths(self):
        self.check("/v1/chat/completions/", JSON, text, "/v1/chat/completions")
        self.check("/v1/images/edits/?a=b/", FORM, form, "/v1/images/edits?a=b/")
        c = self.client(self.r)
        self.assertEqual(c.ask("GET", "/v1/models/").json["object"], "list")
        self.assertEqual(c.ask("GET", "/v1/models/one/").json["id"], "one")
        self.assertEqual(c.ask("GET", "/health/").status, 200)
        self.assertEqual(c.ask("GET", "/v1/chat/completions/").get("allow"), "POST")
        c.ask("GET", "/docs/")
        self.assertIn("/docs/", [a.target for a in self.one.requests + self.other.requests])

    def test_an_absolute_target_overrides_the_host_header(self):
        body = text("other")
        c = self.client(self.r)
        c.send(b"POST http://api.test:81/v1/embeddings HTTP/1.1\r\nHost: else.test\r\nContent-Length: %d\r\n\r\n%s" %
               (len(body), body))
        self.assertEqual(c.read().status, 200)
        asked = self.other.requests[-1]
        self.assertEqual((asked.target, asked.get("x-forwarded-host")), ("/v1/embeddings", "api.test:81"))

    def makers(self):
        return [self.keep(Maker("video_old_%d" % i, "img_%d" % i, models=["m%d" % i])) for i in range(3)]

    def test_a_video_is_requested_from_its_maker(self):
        engines = self.makers()
        r = self.router(engines)
        for e in engines * 2:
            made = self.client(r).ask("POST", "/v1/videos", form(e.models[0]), FORM)
            self.assertEqual((made.status, made.get("x-grapevine-replica")), (200, e.name))
            at = "/v1/videos/" + made.json["id"]
            for mine in engines:
                mine.clear()
            for method, path in (("GET", at), ("GET", at + "/content"), ("DELETE", at)):
                got = self.client(r).ask(method, path)
                self.assertEqual((got.status, got.get("x-grapevine-replica")), (200, e.name), (method, path))
            self.assertEqual(len(e.requests), 3)
            self.assertEqual(sum(len(mine.requests) for mine in engines), 3)

    def test_an_unknown_video_is_requested_from_each_replica(self):
        engines = self.makers()
        r = self.router(engines)
        for i, e in enumerate(engines):
            for method, path in (("GET", "/v1/images/img_%d/content" % i), ("DELETE", "/v1/videos/video_old_%d" % i)):
                got = self.client(r).ask(method, path)
                self.assertEqual((got.status, got.get("x-grapevine-replica")), (200, e.name), path)
        deletes = [a for e in engines for a in e.requests if a.method == "DELETE"]
        self.assertEqual(len(deletes), 3)
        self.assertEqual(self.client(r).ask("GET", "/v1/videos/nobody").status, 404)
        self.assertEqual(self.client(r).ask("GET", "/v1/videos").json["object"], "list")

    def test_a_job_is_not_begun_twice(self):
        engines = self.makers()
        for e in engines:
            e.models = ["m"]
            e.closes(b"")
        r = self.router(engines)
        got = self.client(r).ask("POST", "/v1/videos", text("m"), JSON)
        self.assertEqual((got.status, sum(len(e.requests) for e in engines)), (502, 1))
        got = self.client(r).ask("POST", "/v1/images/generations", text("m"), JSON)
        self.assertEqual(got.status, 502)
        self.assertGreater(sum(len(e.requests) for e in engines), 2)


if __name__ == "__main__":
    unittest.main()
