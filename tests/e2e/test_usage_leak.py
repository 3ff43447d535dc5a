"""Usage that the router asked for is never shown to a client that did not ask: however the answer is compressed on its way."""

import gzip
import json
import unittest
import zlib

from lib import Case, Engine, answer, chunk, wait_for
from test_codings import zstd

CHAT = "/v1/chat/completions"
MARK = b'"choices":[],"usage"'


def events(usage, n=3):
    out = [b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"word %d"}}]}\n\n' % i for i in range(n)]
    if usage:
        out.append(b'data: {"id":"c","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":3,"total_tokens":6}}\n\n')
    return out + [b"data: [DONE]\n\n"]


def packer(coding):
    """A function that compresses what comes, piece by piece, as a proxy in between does; None ends it."""
    if coding == "zstd":
        return lambda piece: zstd(piece) if piece else b""
    wbits = {"gzip": 31, "deflate": 15, "br": 15}.get(coding)  # Brotli would need a library: no router reads it
    if wbits is None:
        return lambda piece: piece or b""
    z = zlib.compressobj(6, zlib.DEFLATED, wbits)
    return lambda piece: z.flush() if piece is None else z.compress(piece) + z.flush(zlib.Z_SYNC_FLUSH)


class Packed(Engine):
    """Answers with usage where it is asked for, behind something that compresses."""

    def __init__(self, coding, length=False, type="text/event-stream", cut=0, **how):
        super().__init__(**how)
        self.coding, self.length, self.type, self.cut = coding, length, type, cut
        self.url += "#engine=vllm"
        self.asked_for_usage = []
        self.handler = self.serve

    def serve(self, asked):
        body = json.loads(asked.read_body() or b"{}")
        usage = bool((body.get("stream_options") or {}).get("include_usage"))
        self.asked_for_usage.append(usage)
        pack = packer(self.coding)
        headers = [("Content-Type", self.type)] + ([("Content-Encoding", self.coding)] if self.coding else [])
        if not body.get("stream"):
            data = b'{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}'
            asked.send(answer(200, pack(data) + pack(None), [("Content-Type", "application/json")] + headers[1:]))
            return
        pieces = [pack(e) for e in events(usage)] + [pack(None)]
        if self.length:
            asked.send(answer(200, b"".join(pieces), headers))
            return
        head = "HTTP/1.1 200 OK\r\n%s\r\nTransfer-Encoding: chunked\r\n\r\n" % "\r\n".join("%s: %s" % h for h in headers)
        asked.send(head.encode())
        whole = b"".join(pieces)[:-self.cut] if self.cut else b"".join(pieces)
        for i in range(0, len(whole), 50):
            asked.send(chunk(whole[i:i + 50]))
        asked.send(b"0\r\n\r\n")


def chat(**more):
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}], **more}).encode()


class UsageLeak(Case):
    def packed(self, *args, **how):
        return self.keep(Packed(*args, **how))

    def asking(self, *engines):
        """A router that knows its engines' kind, and so asks for usage: it looks once a second."""
        r = self.router(list(engines))
        probe = engines[-1]  # one whose answers are plain, where that matters
        wait_for(lambda: self.ask(r, stream=True, model=probe.models[0]).status == 200 and any(probe.asked_for_usage),
                 "a router that asks")
        for e in engines:
            e.asked_for_usage.clear()
        return r

    def ask(self, r, **more):
        return self.client(r).ask("POST", CHAT, chat(**more), [("Accept-Encoding", "gzip, deflate, br, zstd")])

    def test_engines_are_asked_for_no_coding(self):
        e = self.packed(None)
        r = self.router([e])
        for more in ({"stream": True}, {}):
            self.assertEqual(self.ask(r, **more).status, 200)
            self.assertIsNone(e.requests[-1].get("accept-encoding"))
        self.client(r).ask("POST", "/v1/embeddings", b"{}", [("Accept-Encoding", "gzip")])
        self.assertEqual(e.requests[-1].get("accept-encoding"), "gzip")
        off = self.router([e], "--ask-usage", "off")
        self.assertEqual(self.ask(off, stream=True).status, 200)
        self.assertEqual((e.requests[-1].get("accept-encoding"), e.asked_for_usage[-1]),
                         ("gzip, deflate, br, zstd", False))

    def test_what_is_compressed_all_the_same_is_decoded_and_cut(self):
        wanted = b"".join(events(False))
        for coding in (None, "identity", "gzip", "zstd"):
            for length in (False, True):
                e = self.packed(coding, length)
                r = self.asking(e)
                for _ in range(2):
                    got = self.ask(r, stream=True)
                    self.assertEqual((got.status, got.body), (200, wanted), (coding, length))
                    self.assertIn(got.get("content-encoding"), (None, "identity"))
                self.assertEqual(e.asked_for_usage, [True, True])
                got = self.ask(r)
                self.assertEqual(json.loads(got.body)["usage"]["prompt_tokens"], 3, coding)
                mine = self.ask(r, stream=True, stream_options={"include_usage": True})
                self.assertEqual(mine.body.count(MARK), 1)
                r.quiet()

    def test_where_it_cannot_be_read_it_is_not_asked_again(self):
        """The first answer is thrown away, and asked for again without; another replica is asked as ever."""
        packed, plain = self.packed("br", models=["packed"]), self.packed(None, models=["plain"])
        r = self.asking(packed, plain)
        for _ in range(4):
            got = self.ask(r, stream=True, model="packed")
            self.assertEqual((got.status, got.get("content-encoding")), (200, "br"))
            self.assertEqual(zlib.decompress(got.body), b"".join(events(False)))
            self.assertNotIn(MARK, self.ask(r, stream=True, model="plain").body)
        self.assertEqual(packed.asked_for_usage, [True] + [False] * 4)
        self.assertEqual(plain.asked_for_usage, [True] * 4)
        told = r.events("answer_coding_unread")
        self.assertEqual([(t["replica"], t["coding"]) for t in told], [(packed.name, "br")])
        mine = self.ask(r, stream=True, model="packed", stream_options={"include_usage": True})
        self.assertEqual((mine.status, packed.asked_for_usage[-1]), (200, True))

    def test_another_type_than_that_of_events(self):
        r = self.asking(self.packed(None, type="text/plain"))
        self.assertEqual(self.ask(r, stream=True).body, b"".join(events(False)))

    def test_a_compressed_answer_that_ends_early_is_no_answer(self):
        bad, good = self.packed("gzip", cut=30), self.packed("gzip")
        bad.handler, good.handler = self.first_fails(bad, good), self.first_fails(good, bad)
        r = self.router([bad, good])
        self.assertEqual(self.ask(r).status, 200)

    def first_fails(self, e, other):
        def handler(asked):
            if len(e.requests) + len(other.requests) == 1:
                asked.read_body()
                asked.send(answer(200, gzip.compress(b'{"choices":[]}')[:-6],
                                  [("Content-Type", "application/json"), ("Content-Encoding", "gzip")]))
            else:
                e.serve(asked)
        return handler


if __name__ == "__main__":
    unittest.main()
