"""Usage that the router asked for is never shown to a client that did not ask: however the answer is compressed on its way."""

import gzip
import json
import re
import unittest
import zlib

from lib import Case, Engine, answer, chunk, request, wait_for
from test_codings import zstd

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
MARK = b'"choices":[],"usage"'
FINGERPRINT = b',"system_fingerprint":"vllm-0.32.0-39c297dc"'  # in the last event, as vLLM has it
# Streams of APIs that always report usage: the router requests none, and removes none.
TELLING = {
    "/v1/messages": [b'event: %s\ndata: {"type":"%s"%s}\n\n' % (t, t, more) for t, more in (
        (b"message_start", b',"message":{"id":"msg_1","role":"assistant","content":[],"usage":{"input_tokens":3,"output_tokens":0}}'),
        (b"content_block_start", b',"index":0,"content_block":{"type":"text","text":""}'),
        (b"content_block_delta", b',"index":0,"delta":{"type":"text_delta","text":"word"}'),
        (b"content_block_stop", b',"index":0'),
        (b"message_delta", b',"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}'),
        (b"message_stop", b""))],
    "/v1/responses": [b'event: %s\ndata: {"type":"%s","sequence_number":%d%s}\n\n' % (t, t, i, more) for i, (t, more) in enumerate((
        (b"response.created", b',"response":{"id":"resp_1","status":"in_progress","output":[],"usage":null}'),
        (b"response.output_text.delta", b',"item_id":"i","output_index":0,"content_index":0,"delta":"word"'),
        (b"response.completed", b',"response":{"id":"resp_1","status":"completed","output":[],'
         b'"usage":{"input_tokens":3,"output_tokens":1,"total_tokens":4}}')))],
}


def events(usage, n=3, path=CHAT):
    if path in TELLING:
        return TELLING[path]
    said = b'"text":"word %d"' if path == COMPLETIONS else b'"delta":{"content":"word %d"}'
    out = [b'data: {"id":"c","choices":[{"index":0,%s,"finish_reason":%s}]%s}\n\n' % (
        said % i, b'"stop"' if i == n - 1 else b"null", b"" if usage or i < n - 1 else FINGERPRINT) for i in range(n)]
    if usage:
        out.append(b'data: {"id":"c","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":3,"total_tokens":6}%s}\n\n'
                   % FINGERPRINT)
    return out + [b"data: [DONE]\n\n"]


def packer(coding):
    """A function that compresses what comes, piece by piece, as a proxy in between does; None ends it."""
    if coding == "zstd":
        return lambda piece: zstd(piece) if piece else b""  # a frame each
    wbits = {"gzip": 31, "gzip, identity": 31, "x-gzip": 31, "deflate": 15, "br": 15}.get(coding)  # Brotli would need a library: no router reads it
    if wbits is None:
        return lambda piece: piece or b""
    z = zlib.compressobj(6, zlib.DEFLATED, wbits)
    return lambda piece: z.flush() if piece is None else z.compress(piece) + z.flush(zlib.Z_SYNC_FLUSH)


class Packed(Engine):
    """Answers with usage if it is requested, behind a proxy that compresses."""

    def __init__(self, coding, length=False, type="text/event-stream", cut=0, kind="vllm", **how):
        super().__init__(**how)
        self.coding, self.length, self.type, self.cut = coding, length, type, cut
        self.url += "#engine=" + kind
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
        pieces = [pack(e) for e in events(usage, path=asked.path)] + [pack(None)]
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


def body_of(path, **more):
    said = {CHAT: {"messages": [{"role": "user", "content": "hi"}]}, COMPLETIONS: {"prompt": "hi"},
            "/v1/messages": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9},
            "/v1/responses": {"input": "hi", "store": False}}[path]
    return json.dumps({"model": "m", "stream": True, **said, **more}).encode()


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

    def test_engines_are_asked_for_uncompressed_answers(self):
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

    def test_compressed_answers_are_decoded_and_usage_is_removed(self):
        for kind in ("vllm", "sglang"):
            e = self.packed(None, kind=kind)
            r = self.asking(e)
            for e.coding in (None, "identity", "gzip", "zstd", "gzip, identity", "x-gzip"):
                for e.length in (False, True):
                    for path in (CHAT, COMPLETIONS, *TELLING):
                        e.asked_for_usage.clear()
                        got = self.client(r).ask("POST", path, body_of(path), [("Accept-Encoding", "gzip, br, identity;q=0")])
                        self.assertEqual((got.status, got.body), (200, b"".join(events(False, path=path))),
                                         (kind, e.coding, e.length, path))
                        self.assertIn(got.get("content-encoding"), (None, "identity"))
                        self.assertEqual(e.asked_for_usage, [path not in TELLING])
                    got = self.ask(r)
                    self.assertEqual(json.loads(got.body)["usage"]["prompt_tokens"], 3, e.coding)
                    mine = self.ask(r, stream=True, stream_options={"include_usage": True})
                    self.assertEqual(mine.body.count(MARK), 1)
            r.quiet()
            figures = r.metrics()
            for coding, least in (("gzip", 30), ("zstd", 10)):
                self.assertGreaterEqual(figures['grapevine_answers_decoded_total{coding="%s"}' % coding], least)
            self.assertLess(figures["grapevine_body_bytes_held"], 1 << 20)

    def test_the_client_gets_the_engines_bytes(self):
        """In a stream with usage, vLLM has its fingerprint in another event."""
        for kind in ((), ("--engine", "sglang")):
            e = self.sim("--speed-up", "50", *kind)
            r = self.router([e.url])
            long = "hi " * 500  # SGLang tells only of what was cached
            for path, said in ((CHAT, {"messages": [{"role": "user", "content": long}]}), (COMPLETIONS, {"prompt": long})):
                body = body_of(path, model="sim", max_tokens=1, **said)  # more come in chunks as the engine finds time

                def ask(port, body=body, path=path):
                    got = self.client(port).ask("POST", path, body, [("Content-Type", "application/json")])
                    return re.sub(rb'("id":"[^"]*"|"created":\d+)', b"", got.body)

                wait_for(lambda: ask(r) and [v for k, v in r.metrics().items() if "answered_cached_tokens" in k and v],
                         "a router that asks")
                direct = ask(e.port)
                self.assertEqual(ask(r), direct)
                self.assertEqual((MARK in direct, direct.count(FINGERPRINT)), (False, 0 if kind else 1))

    def test_usage_is_not_requested_again_if_its_coding_is_unreadable(self):
        """The first answer is discarded and requested again without usage; other replicas are still asked for usage."""
        unread = {c: self.packed(c, models=[c], kind=kind) for c, kind in
                  (("br", "vllm"), ("deflate", "sglang"), ("gzip, gzip", "vllm"))}
        plain = self.packed(None, models=["plain"])
        r = self.asking(*unread.values(), plain)
        for coding, e in unread.items():
            for path in (CHAT, COMPLETIONS, *TELLING):
                got = self.client(r).ask("POST", path, body_of(path, model=coding))
                self.assertEqual((got.status, got.get("content-encoding")), (200, coding), path)
                wanted = b"".join(events(False, path=path))
                self.assertEqual(zlib.decompress(got.body) if coding in ("br", "deflate") else got.body, wanted)
                self.assertNotIn(MARK, self.ask(r, stream=True, model="plain").body)
            self.assertEqual(e.asked_for_usage, [True] + [False] * 4)
            mine = self.ask(r, stream=True, model=coding, stream_options={"include_usage": True})
            self.assertEqual((mine.status, e.asked_for_usage[-1]), (200, True))
        self.assertEqual(plain.asked_for_usage, [True] * 12)
        told = r.events("answer_coding_unread")
        self.assertEqual([(t["replica"], t["coding"]) for t in told], [(e.name, c) for c, e in unread.items()])

    def test_a_bomb_waits_for_its_client_and_costs_no_memory(self):
        """32 KiB that expand to 32 MiB, to a client that does not read; then it does."""
        bomb = gzip.compress(b'data: {"choices":[{"delta":{"content":"%s"}}]}\n\n' % (b"x" * (32 << 20)) + b"data: [DONE]\n\n")
        e = self.engine()
        e.handler = lambda asked: (asked.read_body(), asked.send(answer(200, bomb, [
            ("Content-Type", "text/event-stream"), ("Content-Encoding", "gzip")])))
        r = self.router([e])
        self.ask(r)  # one-time allocations are done
        before = r.rss()
        c = self.client(r, receive_buffer=65536)
        c.send(request("POST", CHAT, chat(stream=True)))
        wait_for(lambda: r.metric("backpressure_total") > 0, "a router that waits for its client")
        self.assertLess(r.rss() - before, 8 << 20)
        self.assertLess(r.metric("body_bytes_held"), 2 << 20)
        got = c.read()
        self.assertEqual((got.status, len(got.body)), (200, (32 << 20) + 60))
        self.assertEqual(got.body[-14:], b"data: [DONE]\n\n")
        self.assertEqual(r.metric("body_bytes_held"), 0)

    def test_usage_is_removed_with_another_content_type(self):
        r = self.asking(self.packed(None, type="text/plain"))
        self.assertEqual(self.ask(r, stream=True).body, b"".join(events(False)))

    def test_a_truncated_compressed_answer_is_retried(self):
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
