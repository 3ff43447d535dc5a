"""Bytes on their way: streams pass at once and unchanged, and no peer makes the router buffer much."""

import hashlib
import json
import random
import socket
import threading
import time
import unittest

from lib import LIMIT, SSE_HEAD, Case, Engine, Router, answer, chunk, request, wait_for

CHAT = "/v1/chat/completions"


def chat(stream=True, usage=True, **more):
    """The client requests usage itself, so the router adds no request for usage and removes nothing."""
    if stream and usage:
        more["stream_options"] = {"include_usage": True}
    return json.dumps(dict({"model": "m", "stream": stream,
                            "messages": [{"role": "user", "content": "hi"}]}, **more)).encode()


def events(n):
    """A realistic stream: role, tokens with multi-byte text, finish, usage, [DONE]."""
    def event(delta, finish=None):
        return b"data: " + json.dumps(
            {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m",
             "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]},
            ensure_ascii=False).encode() + b"\n\n"
    out = [event({"role": "assistant", "content": ""})]
    out += [event({"content": "t\u00f6k\u2028 \"%d\" \U0001f600" % i}) for i in range(n)]
    out.append(event({}, "stop"))
    out.append(b'data: {"id":"chatcmpl-1","choices":[],"usage":{"prompt_tokens":10,'
               b'"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":5}}}\n\n' % n)
    out.append(b"data: [DONE]\n\n")
    return out


class Streams(Case):
    @classmethod
    def set_up(cls):
        cls.e = cls.shared(Engine())
        cls.r = cls.shared(Router([cls.e], "--other-paths", "pass"))

    def setUp(self):
        super().setUp()
        self.e.clear()

    def test_a_stream_passes_byte_for_byte_under_any_chunking(self):
        whole = b"".join(events(30))
        rng = random.Random(1)
        for turn in range(8):
            pieces, rest = [], whole
            while rest:
                n = (1 if turn == 0 else rng.choice((1, 2, 3, 7, 50, 500, 5000)))
                pieces.append(rest[:n])
                rest = rest[n:]
            merge = turn % 2  # several chunks in one packet, or one in several

            def handler(asked):
                asked.read_body()
                raw = SSE_HEAD + b"".join(chunk(p) for p in pieces) + b"0\r\n\r\n"
                at = 0
                while at < len(raw):
                    n = len(raw) if merge else rng.choice((1, 3, 100, 1000))
                    asked.send(raw[at:at + n])
                    at += n
            self.e.handler = handler
            got = self.client(self.r).ask("POST", CHAT, chat())
            self.assertEqual(got.body, whole)
            self.assertEqual(got.get("content-type"), "text/event-stream; charset=utf-8")

    def answer_in_turns(self, body, pieces):
        """From the first token on the engine sends the next piece only after the client has confirmed the one
        before."""
        seen = threading.Semaphore(0)

        def handler(asked):
            asked.read_body()
            asked.send(SSE_HEAD + chunk(pieces[0]))
            seen.acquire(timeout=10)
            for part in pieces[1:]:
                asked.send(chunk(part))
                if b'"usage"' not in part and not seen.acquire(timeout=10):
                    raise AssertionError("a piece was held back: %r" % part)
            asked.send(b"0\r\n\r\n")
        self.e.handler = handler
        c = self.client(self.r)
        c.send(request("POST", CHAT, body))
        return c.read(on_chunk=lambda data: seen.release())

    def test_no_chunk_is_held_back(self):
        pieces = [b"".join(events(20)[:2])]
        for e in events(20)[2:]:
            half = len(e) // 2
            pieces += [e[:half], e[half:]]
        self.assertEqual(self.answer_in_turns(chat(), pieces).body, b"".join(events(20)))


class Pressure(Case):
    """A slow side never makes the router hold what the fast side sends."""

    MB = 1 << 20

    @classmethod
    def set_up(cls):
        cls.e = cls.shared(Engine(receive_buffer=65536))
        cls.r = cls.shared(Router([cls.e], "--other-paths", "pass"))

    def setUp(self):
        super().setUp()
        self.e.clear()
        self.r.get("/health")
        self.sent = 0

    def stalled(self):
        """Waits until self.sent stops growing."""
        last = [-1, time.monotonic()]

        def check():
            if self.sent != last[0]:
                last[:] = [self.sent, time.monotonic()]
            return self.sent > 0 and time.monotonic() - last[1] > 0.3
        wait_for(check, "the fast side to be held back", 30)

    def test_a_slow_reader_holds_the_engine_back(self):
        total = 50 * self.MB
        block = bytes(range(256)) * 256
        want = hashlib.sha256()

        def handler(asked):
            asked.read_body()
            asked.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for i in range(total // len(block)):
                data = b"%08d" % i + block[8:]
                want.update(data)
                asked.send(chunk(data))
                self.sent += len(data)
            asked.send(b"0\r\n\r\n")
        self.e.handler = handler
        before = self.r.rss()
        c = self.client(self.r, receive_buffer=16384)
        c.send(request("GET", "/big"))
        self.stalled()
        self.assertLess(self.sent, total * 3 // 4, "the engine was not held back")
        self.assertLess(self.r.rss() - before, 20 * self.MB)
        self.assertGreaterEqual(self.r.metric("backpressure_total"), 1)
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)  # now it reads
        got = c.read()
        self.assertEqual(hashlib.sha256(got.body).digest(), want.digest())
        self.assertLess(self.r.rss() - before, 20 * self.MB)
        self.r.quiet()

    def upload(self, path, head, tail, engine_reads_at_once=False):
        total = 60 * self.MB  # kernels were seen to buffer half of it
        go = threading.Event()
        digest = hashlib.sha256()

        def handler(asked):
            if not engine_reads_at_once and not go.wait(30):
                raise AssertionError("never told to go on")
            length = int(asked.get("content-length"))
            while length:
                data = asked.reader.take(min(length, 65536))
                digest.update(data)
                length -= len(data)
            asked.body = b""
            asked.send(answer(200, b"thanks"))
        self.e.handler = handler
        before = self.r.rss()
        c = self.client(self.r)
        want = hashlib.sha256()
        length = len(head) + total + len(tail)
        c.send(request("POST", path, None, [
            ("Content-Length", str(length)),
            ("Content-Type", "multipart/form-data; boundary=b")]))

        def sender():
            want.update(head)
            c.send(head)
            for i in range(total // 65536):
                data = b"%08d" % i * 8192
                want.update(data)
                c.send(data)
                self.sent += len(data)
            want.update(tail)
            c.send(tail)
        t = threading.Thread(target=sender, daemon=True)
        t.start()
        if not engine_reads_at_once:
            self.stalled()
        try:
            yield before, total
        finally:
            go.set()
        got = c.read()
        t.join(10)
        self.assertEqual((got.status, got.body), (200, b"thanks"))
        self.assertEqual(digest.digest(), want.digest())
        self.r.quiet()

    def test_a_slow_engine_holds_a_streamed_upload_back(self):
        for before, total in self.upload("/upload", b"", b""):
            self.assertLess(self.sent, total * 3 // 4, "the client was not held back")
            self.assertLess(self.r.rss() - before, 20 * self.MB)
            self.assertLess(self.r.metric("body_bytes_held"), 8 * self.MB)

    def test_a_fast_upload_to_a_fast_engine_never_gets_stuck(self):
        """A body that fills the limit during the connect must continue when the connection is made."""
        for _ in range(3):
            for _ in self.upload("/upload", b"", b"", engine_reads_at_once=True):
                pass
            self.sent = 0

    def test_an_answer_before_the_end_of_an_upload_reaches_the_client(self):
        def handler(asked):
            asked.send(answer(413, b'{"error":"too big for me"}'))
            asked.wait_gone()
        self.e.handler = handler
        c = self.client(self.r)
        c.send(request("POST", "/upload", None, [("Content-Length", str(20 * self.MB))]))
        try:
            for _ in range(320):
                c.send(b"x" * 65536)
        except OSError:
            pass
        got = c.read()
        self.assertEqual((got.status, got.body), (413, b'{"error":"too big for me"}'))
        self.assertEqual(got.get("connection"), "close")
        self.assertTrue(self.e.requests[0].gone.wait(LIMIT))
        self.r.quiet()


class Leaving(Case):
    """A client that leaves takes its upstream request along, at once."""

    @classmethod
    def set_up(cls):
        cls.e = cls.shared(Engine())
        cls.r = cls.shared(Router([cls.e], "--other-paths", "pass"))

    def setUp(self):
        super().setUp()
        self.e.clear()

    def leave(self, send, wait_head, how, path=CHAT, stream=True):
        go = threading.Event()

        def handler(asked):
            asked.read_body()
            asked.send(send)
            go.set()
            asked.wait_gone()
        self.e.handler = handler
        c = self.client(self.r)
        c.send(request("POST", path, chat(stream)))
        asked = self.e.wait_request()
        self.assertTrue(go.wait(LIMIT))
        if wait_head:
            c.head()
        getattr(c, how)()
        self.assertTrue(asked.gone.wait(LIMIT), "the upstream request stays")
        self.r.quiet()

    def test_a_client_that_leaves_mid_stream_ends_its_request(self):
        for how in ("close", "reset"):
            self.e.clear()
            self.leave(SSE_HEAD + chunk(b'data: {"text":"x"}\n\n'), True, how)

    def test_fifty_clients_that_leave_at_once_end_their_requests(self):
        def handler(asked):
            asked.read_body()
            asked.send(SSE_HEAD)
            asked.wait_gone()
        self.e.handler = handler
        clients = [self.client(self.r) for _ in range(50)]
        for c in clients:
            c.send(request("POST", CHAT, chat()))
        wait_for(lambda: len(self.e.requests) == 50, "all at the engine")
        for i, c in enumerate(clients):
            c.reset() if i % 2 else c.close()
        wait_for(lambda: all(a.gone.is_set() for a in self.e.requests), "all let go", 5)
        self.r.quiet()


if __name__ == "__main__":
    unittest.main()
