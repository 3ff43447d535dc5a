"""Compressed request bodies: the router decodes them, routes by the model in them, and engines get them plain."""

import gzip
import json
import os
import shutil
import subprocess
import unittest

from lib import Case, Engine, Router, answer, request

CHAT = "/v1/chat/completions"


def chat(model, text="hi", **more):
    return json.dumps({"model": model, "messages": [{"role": "user", "content": text}], **more}).encode()


def zstd(data):
    """Compresses with the zstd tool. If there is none, makes a frame of raw blocks, which serves as well."""
    if shutil.which("zstd"):
        return subprocess.run(["zstd", "-qc"], input=data, capture_output=True, check=True).stdout
    out = b"\x28\xb5\x2f\xfd\x00\x50"  # a window of 1 MiB
    blocks = [data[i:i + 65536] for i in range(0, len(data), 65536)] or [b""]
    for i, block in enumerate(blocks):
        out += (len(block) << 3 | (i == len(blocks) - 1)).to_bytes(3, "little") + block
    return out


PACK = {"gzip": gzip.compress, "zstd": zstd}


class Codings(Case):
    @classmethod
    def set_up(cls):
        cls.one, cls.other = cls.shared(Engine(models=["one"])), cls.shared(Engine(models=["other"]))
        cls.r = cls.shared(Router([cls.one, cls.other], "--body-bytes-max", "2MiB"))

    def setUp(self):
        super().setUp()
        for e in (self.one, self.other):
            e.clear()
            e.handler = lambda asked: (asked.read_body(), asked.send(answer(200, b"{}")))

    def send(self, body, coding, *headers, path=CHAT):
        return self.client(self.r).ask("POST", path, body, [("Content-Encoding", coding), *headers])

    def test_compressed_requests_reach_their_model_decoded(self):
        for coding, pack in PACK.items():
            for e in (self.one, self.other) * 4:
                body = chat(e.models[0], os.urandom(20000).hex())
                got = self.send(pack(body), coding, ("Content-Type", "application/json"))
                asked = e.requests[-1]
                self.assertEqual((got.status, got.get("x-grapevine-replica")), (200, e.name), got.body)
                self.assertEqual((asked.body, asked.get("content-encoding")), (body, None))
                self.assertEqual(asked.all("content-length"), [str(len(body))])

    def test_chunked_in_small_pieces_after_100_continue(self):
        body = chat("other", "long " * 5000)
        for coding, pack in PACK.items():
            packed = pack(body)
            c = self.client(self.r)
            c.send(request("POST", CHAT, None, [("Content-Encoding", coding), ("Transfer-Encoding", "chunked"),
                                                ("Expect", "100-continue")]))
            for i in range(0, len(packed), 7):
                piece = packed[i:i + 7]
                c.send(b"%x\r\n%s\r\n" % (len(piece), piece))
            c.send(b"0\r\n\r\n")
            while True:
                got = c.read()
                if got.status != 100:
                    break
            self.assertEqual((got.status, self.other.requests[-1].body), (200, body))

    def test_multipart_bodies_are_decoded_too(self):
        body = (b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nother\r\n--b\r\n'
                b'Content-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n' + bytes(5000) + b"\r\n--b--\r\n")
        got = self.send(gzip.compress(body), "gzip", ("Content-Type", "multipart/form-data; boundary=b"),
                        path="/v1/audio/transcriptions")
        self.assertEqual((got.status, self.other.requests[-1].body), (200, body))

    def test_a_retry_sends_the_decoded_body(self):
        e, f = self.engine(), self.engine()
        for mine in (e, f):
            def handler(asked, mine=mine):
                asked.read_body()
                first = len(e.requests) + len(f.requests) == 1
                asked.send(answer(503 if first else 200, b"{}"))
            mine.handler = handler
        r = self.router([e, f])
        body = chat("m")
        got = self.client(r).ask("POST", CHAT, gzip.compress(body), [("Content-Encoding", "gzip")])
        self.assertEqual(got.status, 200, got.body)
        self.assertEqual([a.body for a in e.requests + f.requests], [body, body])

    def test_identity_is_no_coding(self):
        body = chat("other")
        self.assertEqual((self.send(body, "identity").status, self.other.requests[-1].body), (200, body))

    def test_coding_aliases_lists_and_several_members_are_accepted(self):
        body = chat("other", "a text of some length")
        two = gzip.compress(body[:30]) + gzip.compress(b"") + gzip.compress(body[30:])
        for coding, packed in (("x-gzip", gzip.compress(body)), ("GZip", gzip.compress(body)),
                               ("gzip, identity", gzip.compress(body)), ("identity , gzip,", gzip.compress(body)),
                               ("gzip", two), ("zstd", zstd(body[:30]) + zstd(body[30:])), ("Zstd", zstd(body))):
            got = self.send(packed, coding)
            self.assertEqual((got.status, self.other.requests[-1].body), (200, body), coding)
        got = self.client(self.r).ask("POST", CHAT, gzip.compress(body), [("Content-Encoding", "identity"),
                                                                          ("Content-Encoding", "gzip")])
        self.assertEqual((got.status, self.other.requests[-1].body), (200, body))

    def test_trailers_are_dropped_and_cannot_declare_a_coding(self):
        body = chat("other")
        head = request("POST", CHAT, None, [("Content-Encoding", "gzip"), ("Transfer-Encoding", "chunked")])
        packed = gzip.compress(body)
        for trailer, status in ((b"X-Sum: 1\r\n", 200), (b"Content-Encoding: identity\r\n", 400)):
            c = self.client(self.r)
            c.send(head + b"%x\r\n%s\r\n0\r\n%s\r\n" % (len(packed), packed, trailer))
            self.assertEqual(c.read().status, status, trailer)
        self.assertEqual([a.body for a in self.other.requests], [body])
        self.assertIsNone(self.other.requests[0].get("x-sum"))

    def test_other_codings_get_415_with_the_accepted_ones(self):
        for coding in ("br", "deflate", "gzip, gzip", "compress"):
            got = self.send(chat("one"), coding)
            self.assertEqual((got.status, got.get("accept-encoding"), got.get("x-grapevine-reason")),
                             (415, "gzip, zstd", "coding"))
            self.assertIn(b"gzip, zstd", got.body)
        got = self.send(b"{}", "br", path="/v1/messages")
        self.assertEqual((got.status, json.loads(got.body)["type"]), (415, "error"))
        self.assertEqual(self.one.requests + self.other.requests, [])

    def test_malformed_and_huge_bodies_are_refused(self):
        good, large = gzip.compress(chat("one")), os.urandom(1200000).hex()
        for status, reason, body in ((400, "malformed", good[:-4]), (400, "malformed", good + b"x"),
                                     (400, "malformed", b"{}"), (413, "body_limit", gzip.compress(chat("one", large), 1)),
                                     (413, "body_limit", gzip.compress(b" " * 1900000)),
                                     (413, "body_limit", gzip.compress(b" " * 300000000, 1))):
            got = self.send(body, "gzip")
            self.assertEqual((got.status, got.get("x-grapevine-reason")), (status, reason), got.body)
        for status, body in ((400, b"\x28\xb5\x2f\xfd\x00\x88" + b"\x0a\x00\x00 "),  # a window of 128 MiB
                             (400, zstd(chat("one"))[:-3]), (400, zstd(chat("one")) + b"x"), (400, chat("one"))):
            got = self.send(body, "zstd")
            self.assertEqual((got.status, got.json["error"]["code"]), (status, status))
            self.assertIn("zstd body", got.json["error"]["message"])
        self.assertEqual(self.one.requests + self.other.requests, [])
        self.assertEqual(self.send(good, "gzip").status, 200)
        figures = self.r.metrics()
        self.assertGreater(figures['grapevine_request_bodies_decoded_total{coding="gzip"}'], 0)

    def test_large_zstd_windows_count_against_buffered_bytes(self):
        r = self.router([self.one], "--body-bytes-max", "1MiB", "--buffered-bytes-max", "16MiB")
        packed = b"\x28\xb5\x2f\xfd\x00\x68" + (1 << 3 | 2).to_bytes(3, "little") + b" "  # RLE: 8 MiB of window
        clients = []
        for _ in range(6):
            c = self.client(r)
            c.send(request("POST", CHAT, None, [("Content-Encoding", "zstd"), ("Content-Length", "1000")]) + packed)
            clients.append(c)
        refused = clients[-1].read()
        self.assertEqual((refused.status, refused.get("x-grapevine-reason")), (503, "memory"))
        self.assertLessEqual(r.metrics()["grapevine_body_bytes_held"], 16 << 20)


if __name__ == "__main__":
    unittest.main()
