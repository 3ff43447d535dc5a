"""Changes to requests and answers at the front door, at each of three routers alike: host names, unrequested usage,
paths, compression, browsers. The engines, a vLLM and an SGLang, answer only to their names and compress as they
like."""

import gzip
import json
import os
import unittest

from lib import Engine, answer, answer_json, chunk, wait_for
from lib_cluster import Clustered, gvctl
from test_codings import zstd
from test_media_paths import form
from test_usage_leak import CHAT, COMPLETIONS, TELLING, body_of, events, packer

ORIGIN = ("Origin", "https://chat.test")
ASK = [("Access-Control-Request-Method", "POST"), ("Access-Control-Request-Headers", "authorization")]


class Site(Engine):
    """One of several sites at an address, known by Host, behind something that compresses."""

    def __init__(self, kind, coding, model):
        super().__init__(models=[model])
        self.name, self.coding = "localhost:%d" % self.port, coding
        self.url = "http://%s#engine=%s" % (self.name, kind)
        self.strangers, self.usage, self.made = [], [], []
        self.handler = self.serve

    def _probe(self, asked):
        self.welcome(asked) and super()._probe(asked)

    def welcome(self, asked):
        if asked.get("host") != self.name:
            self.strangers.append((asked.target, asked.get("host")))
            asked.send(answer(404, b"no such site"))
        return asked.get("host") == self.name

    def serve(self, asked):
        body = asked.read_body()
        if not self.welcome(asked):
            return
        if asked.path.startswith("/v1/videos"):
            made = asked.path.rpartition("/")[2]
            if asked.method == "POST":
                made = "video_%s_%d" % (self.models[0], len(self.made))
                self.made.append(made)
            asked.send(answer_json({"id": made} if made in self.made else {"detail": "none"}, 200 if made in self.made else 404))
        elif asked.path in (CHAT, COMPLETIONS, *TELLING) and json.loads(body).get("stream"):
            usage = "stream_options" in json.loads(body)
            self.usage.append(usage)
            pack = packer(self.coding)
            asked.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: %s\r\n"
                       b"Transfer-Encoding: chunked\r\n\r\n" % self.coding.encode())
            for e in events(usage, path=asked.path):
                asked.send(chunk(pack(e)))
            last = pack(None)
            asked.send((chunk(last) if last else b"") + b"0\r\n\r\n")
        else:
            asked.send(answer(200, b'{"choices":[]}', [("Content-Type", "application/json"),
                                                       ("Access-Control-Allow-Origin", "*")]))


class FrontDoorOfThree(Clustered):
    def test_each_router_does_the_same(self):
        engines = [self.keep(Site("vllm", "gzip", "one")), self.keep(Site("sglang", "zstd", "other"))]
        keys = os.path.join(self.folder.name, "clients")
        status, out, err = gvctl("key", "new", "alice", "--file", keys)
        self.assertEqual((status, err), (0, ""))
        key = ("Authorization", "Bearer " + out.strip())
        routers = self.cluster(3, engines, "--client-keys-file", keys, "--cors-allow-origin", ORIGIN[1])
        for r in routers:
            for e in engines:  # its list has come, and its kind is known: the router asks for usage
                wait_for(lambda: self.client(r).ask("POST", CHAT, body_of(CHAT, model=e.models[0]), [key]).status == 200
                         and e.usage[-1], "a router that asks for usage")
        seen = [self.seen(r, engines, key) for r in routers]
        self.assertEqual(seen[0], seen[1])
        self.assertEqual(seen[0], seen[2])
        self.assertEqual([s for e in engines for s in e.strangers], [])
        for made in [i for e in engines for i in e.made]:  # a video is found from any router
            for r in routers:
                self.assertEqual(self.client(r).ask("GET", "/v1/videos/" + made, None, [key]).status, 200)

    def seen(self, r, engines, key):
        """A client's view of each kind of request, checked as far as all routers could be wrong alike."""
        out = []

        def ask(method, path, body, status, *headers, keyed=True):
            got = self.client(r).ask(method, path, body, [*headers, *([key] if keyed else [])])
            self.assertEqual(got.status, status, (method, path, headers, got.body))
            out.append((method, path, got.status, got.get("x-grapevine-replica"), got.get("x-grapevine-reason"),
                        got.get("content-encoding"), got.get("vary"), got.all("access-control-allow-origin")))
            return got

        for e in engines:
            model = e.models[0]
            for path in (CHAT, COMPLETIONS, *TELLING):
                got = ask("POST", path, body_of(path, model=model), 200, ("Accept-Encoding", "gzip, zstd"))
                self.assertEqual(got.body, b"".join(events(False, path=path)), path)
                self.assertEqual(got.get("x-grapevine-replica"), e.name)
            plain = json.dumps({"model": model, "input": "x", "prompt": "x"}).encode()
            for pack, coding in ((gzip.compress, "gzip"), (zstd, "zstd")):
                ask("POST", "/v1/embeddings", pack(plain), 200, ("Content-Encoding", coding))
                self.assertEqual(e.requests[-1].body, plain)
            for path in ("/v1/audio/speech", "/v1/images/generations", "/v1/moderations/", "/v1/chat/completions/", "/v1/videos"):
                ask("POST", path, plain, 200, ("Content-Type", "application/json"))
                self.assertEqual(e.requests[-1].path, path.rstrip("/"))
            ask("POST", "/v1/images/edits", form(model), 200, ("Content-Type", "multipart/form-data; boundary=b"))
            self.assertEqual(e.requests[-1].get("host"), e.name)
        ask("POST", CHAT, b"{}", 415, ("Content-Encoding", "br"), ORIGIN)
        ask("POST", CHAT, gzip.compress(b"{}")[:-4], 400, ("Content-Encoding", "gzip"), ORIGIN)
        ask("POST", CHAT, plain, 401, ORIGIN, keyed=False)
        ask("POST", CHAT, plain, 200, ORIGIN)
        ask("POST", CHAT, plain, 200, ("Origin", "https://evil.test"))
        ask("GET", "/v1/models", None, 200, ORIGIN)
        ask("OPTIONS", CHAT, None, 204, ORIGIN, *ASK, keyed=False)
        ask("OPTIONS", CHAT, None, 403, ("Origin", "https://evil.test"), *ASK, keyed=False)
        return out


if __name__ == "__main__":
    unittest.main()
