"""The front door: what clients may send, in which order they are answered, and what is refused."""

import unittest

from lib import Case, Client, Cut, Engine, Router, answer, chunked, request

GET = b"GET /x HTTP/1.1\r\nHost: a\r\n"
POST = b"POST /x HTTP/1.1\r\nHost: a\r\n"

# name: (bytes, statuses that fit)
REFUSED = {
    "both length and chunked":
        (POST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {400}),
    "chunked and length, the other order":
        (POST + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n", {400}),
    "two different lengths": (POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", {400}),
    "the same length twice": (POST + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", {400}),
    "a list of lengths": (POST + b"Content-Length: 3, 3\r\n\r\nabc", {400}),
    "signed length": (POST + b"Content-Length: +3\r\n\r\nabc", {400}),
    "negative length": (POST + b"Content-Length: -3\r\n\r\nabc", {400}),
    "hexadecimal length": (POST + b"Content-Length: 0x3\r\n\r\nabc", {400}),
    "empty length": (POST + b"Content-Length:\r\n\r\n", {400}),
    "length with a space inside": (POST + b"Content-Length: 1 1\r\n\r\nhello worldx", {400}),
    "a length beyond 64 bits":
        (POST + b"Content-Length: 99999999999999999999999\r\n\r\n", {400, 413}),
    "length with an underscore": (POST + b"Content_Length: 3\r\n\r\nabc", {400}),
    "space before the colon": (POST + b"Content-Length : 3\r\n\r\nabc", {400}),
    "tab before the colon": (POST + b"Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n", {400}),
    "space before the first name": (b"GET /x HTTP/1.1\r\n Host: a\r\n\r\n", {400}),
    "folded line": (GET + b"X-A: 1\r\n 2\r\n\r\n", {400}),
    "folded line with tab": (GET + b"X-A: 1\r\n\tchunked\r\n\r\n", {400}),
    "bare LF after the request line": (b"GET /x HTTP/1.1\nHost: a\r\n\r\n", {400}),
    "bare LF after a field": (b"GET /x HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", {400}),
    "bare LF at the end": (b"GET /x HTTP/1.1\r\nHost: a\r\n\n", {400}),
    "bare CR in a value": (GET + b"X-A: 1\r2\r\n\r\n", {400}),
    "bare CR in the request line": (b"GET /x\r HTTP/1.1\r\nHost: a\r\n\r\n", {400}),
    "NUL in a value": (GET + b"X-A: 1\x002\r\n\r\n", {400}),
    "NUL in a name": (GET + b"X\x00A: 1\r\n\r\n", {400}),
    "NUL in the target": (b"GET /x\x00y HTTP/1.1\r\nHost: a\r\n\r\n", {400}),
    "control byte in a value": (GET + b"X-A: 1\x012\r\n\r\n", {400}),
    "no colon": (GET + b"nonsense\r\n\r\n", {400}),
    "empty name": (GET + b": value\r\n\r\n", {400}),
    "a name that is no token": (GET + b"X(A): 1\r\n\r\n", {400}),
    "missing Host": (b"GET /x HTTP/1.1\r\nX: a\r\n\r\n", {400}),
    "two Hosts": (GET + b"Host: b\r\n\r\n", {400}),
    "the same Host twice": (GET + b"Host: a\r\n\r\n", {400}),
    "malformed Host": (b"GET /x HTTP/1.1\r\nHost: a b\r\n\r\n", {400}),
    "Host with a path": (b"GET /x HTTP/1.1\r\nHost: a/b\r\n\r\n", {400}),
    "Host with a user": (b"GET /x HTTP/1.1\r\nHost: u@a\r\n\r\n", {400}),
    "unknown coding": (POST + b"Transfer-Encoding: gzip\r\n\r\n", {400, 501}),
    "chunked twice": (POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", {400, 501}),
    "gzip then chunked": (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", {400, 501}),
    "chunked not last": (POST + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", {400, 501}),
    "identity": (POST + b"Transfer-Encoding: identity\r\n\r\n", {400, 501}),
    "chunked in two fields":
        (POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
         {400, 501}),
    "xchunked": (POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", {400, 501}),
    "quoted chunked": (POST + b"Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", {400, 501}),
    "chunked with vertical tab": (POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", {400}),
    "chunked over HTTP/1.0":
        (b"POST /x HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {400, 501}),
    "empty coding": (POST + b"Transfer-Encoding:\r\n\r\n", {400, 501}),
    "HTTP/2.0": (b"GET /x HTTP/2.0\r\nHost: a\r\n\r\n", {400, 505}),
    "HTTP/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400, 501, 505}),
    "HTTP/1.2": (b"GET /x HTTP/1.2\r\nHost: a\r\n\r\n", {400, 505}),
    "HTTP/1.10": (b"GET /x HTTP/1.10\r\nHost: a\r\n\r\n", {400, 505}),
    "HTTP/0.9": (b"GET /x\r\n\r\n", {400, 505}),
    "lower case version": (b"GET /x http/1.1\r\nHost: a\r\n\r\n", {400, 505}),
    "two spaces": (b"GET  /x HTTP/1.1\r\nHost: a\r\n\r\n", {400}),
    "tab for space": (b"GET\t/x HTTP/1.1\r\nHost: a\r\n\r\n", {400}),
    "space in the target": (b"GET /x y HTTP/1.1\r\nHost: a\r\n\r\n", {400}),
    "space at the end of the request line": (b"GET /x HTTP/1.1 \r\nHost: a\r\n\r\n", {400}),
    "unknown method": (b"BREW /x HTTP/1.1\r\nHost: a\r\n\r\n", {400, 405, 501}),
    "lower case method": (b"get /x HTTP/1.1\r\nHost: a\r\n\r\n", {400, 405, 501}),
    "TRACE": (b"TRACE /x HTTP/1.1\r\nHost: a\r\n\r\n", {400, 405, 501}),
    "CONNECT": (b"CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", {400, 405, 501}),
    "target without slash": (b"GET x HTTP/1.1\r\nHost: a\r\n\r\n", {400}),
    "fragment in the target": (b"GET /x#y HTTP/1.1\r\nHost: a\r\n\r\n", {400}),
    "star for GET": (b"GET * HTTP/1.1\r\nHost: a\r\n\r\n", {400}),
    "another scheme": (b"GET ftp://a/x HTTP/1.1\r\nHost: a\r\n\r\n", {400}),
    "user in the target": (b"GET http://u:p@a/x HTTP/1.1\r\nHost: a\r\n\r\n", {400}),
    "absolute target of a malformed host":
        (b"GET http://b:x/y HTTP/1.1\r\nHost: a\r\n\r\n", {400}),
    "unencoded byte above 127": (b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n", {400}),
    "garbage": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\r\n\r\n", {400}),
    "an oversized line": (b"GET /x HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 40000, {431}),
    "too many fields":
        (b"GET /x HTTP/1.1\r\nHost: a\r\n" + b"X: 1\r\n" * 200 + b"\r\n", {431}),
    "an endless name": (b"GET /x HTTP/1.1\r\nHost: a\r\n" + b"X" * 40000, {400, 431}),
    "a target too long": (b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", {414}),
    "a body over the limit": (POST + b"Content-Length: 70000000\r\n\r\n", {413}),
    "an unknown expectation": (POST + b"Expect: 200-ok\r\nContent-Length: 1\r\n\r\nx", {400, 417}),
}

# Broken once the body runs; the head alone is fine.
REFUSED_CHUNKS = {
    "no hex": b"zz\r\nabc\r\n0\r\n\r\n",
    "negative": b"-1\r\nabc\r\n0\r\n\r\n",
    "plus": b"+3\r\nabc\r\n0\r\n\r\n",
    "0x": b"0x3\r\nabc\r\n0\r\n\r\n",
    "empty size": b"\r\nabc\r\n0\r\n\r\n",
    "space before": b" 3\r\nabc\r\n0\r\n\r\n",
    "space behind": b"3 \r\nabc\r\n0\r\n\r\n",
    "overflow": b"10000000000000003\r\nabc\r\n0\r\n\r\n",
    "too many digits": b"00000000000000000000000003\r\nabc\r\n0\r\n\r\n",
    "bare LF after the size": b"3\nabc\r\n0\r\n\r\n",
    "bare CR after the size": b"3\rabc\r\n0\r\n\r\n",
    "data too long": b"3\r\nabcd\r\n0\r\n\r\n",
    "bare LF after the data": b"3\r\nabc\n0\r\n\r\n",
    "LF in an extension": b"3;a=b\nabc\r\n0\r\n\r\n",
    "CR in an extension": b"3;a\rb\r\nabc\r\n0\r\n\r\n",
    "NUL in an extension": b"3;a\x00\r\nabc\r\n0\r\n\r\n",
    "an endless extension": b"3;" + b"a" * 100000,
    "bare LF after the last size": b"0\n\n",
    "a trailer without colon": b"3\r\nabc\r\n0\r\nnonsense\r\n\r\n",
    "a trailer with a folded line": b"0\r\nX: a\r\n b\r\n\r\n",
    "endless trailers": b"0\r\n" + b"X: a\r\n" * 20000,
}


class Strict(Case):
    """With --other-paths pass, so that only HTTP itself restricts requests."""

    @classmethod
    def set_up(cls):
        cls.e = cls.shared(Engine())
        cls.r = cls.shared(Router([cls.e], "--other-paths", "pass"))

    def setUp(self):
        super().setUp()
        self.e.clear()

    def refused(self, data, statuses):
        c = self.client(self.r)
        try:
            c.send(data)
        except (ConnectionResetError, BrokenPipeError):
            pass
        got = c.read()
        self.assertIn(got.status, statuses, got)
        self.assertEqual(got.get("connection"), "close", got.raw)
        self.assertIn("message", got.json["error"])
        self.assertTrue(c.is_closed())
        c.close()

    def test_every_ambiguous_head_is_refused_and_never_forwarded(self):
        for name, (data, statuses) in REFUSED.items():
            with self.subTest(name):
                self.refused(data, statuses)
        self.assertEqual([a.start for a in self.e.requests], [])

    def test_an_ambiguous_head_hides_no_second_request(self):
        for name, (data, statuses) in REFUSED.items():
            if len(data) > 10000:
                continue
            with self.subTest(name):
                self.refused(data + b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n", statuses)
        self.assertEqual([a.start for a in self.e.requests], [])

    def test_a_bad_chunk_is_refused_and_never_forwarded(self):
        head = POST + b"Transfer-Encoding: chunked\r\n\r\n"
        for name, body in REFUSED_CHUNKS.items():
            with self.subTest(name):
                self.refused(head + body, {400, 413, 431})
        self.assertEqual([a.start for a in self.e.requests], [])

    def test_refusals_come_even_byte_by_byte(self):
        for name in ("both length and chunked", "bare LF after a field", "two Hosts", "folded line"):
            data, statuses = REFUSED[name]
            with self.subTest(name):
                c = self.client(self.r)
                try:
                    for i in range(len(data)):
                        c.send(data[i:i + 1])
                except OSError:
                    pass
                self.assertIn(c.read().status, statuses)
                self.assertTrue(c.is_closed())
        self.assertEqual(self.e.requests, [])

    def test_the_refusal_of_a_second_request_follows_the_first_answer(self):
        c = self.client(self.r)
        c.send(request("GET", "/one") + b"GET /two HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
        self.assertEqual(c.read().status, 200)
        self.assertEqual(c.read().status, 400)
        self.assertTrue(c.is_closed())
        self.assertEqual([a.path for a in self.e.requests], ["/one"])

    def test_unusual_but_unambiguous_heads_pass(self):
        for name, data, path in (
                ("empty lines before the request", b"\r\n" + GET + b"\r\n", "/x"),
                ("absolute target", b"GET http://a/y HTTP/1.1\r\nHost: a\r\n\r\n", "/y"),
                ("absolute target of another host", b"GET http://b:81/y HTTP/1.1\r\nHost: a\r\n\r\n", "/y"),
                ("no space after the colon", b"GET /x HTTP/1.1\r\nHost:a\r\nX:1\r\n\r\n", "/x"),
                ("white space around values",
                 b"GET /x HTTP/1.1\r\nHost: \t a \t\r\n\r\n", "/x"),
                ("an empty value", GET + b"X-A:\r\n\r\n", "/x"),
                ("OPTIONS *", b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", None),
                ("obs-text in a value", GET + b"X-A: caf\xe9\r\n\r\n", "/x"),
                ("an IPv6 host", b"GET /x HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "/x"),
                ("chunked in capitals",
                 POST + b"Transfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n", "/x"),
                ("a chunk extension",
                 POST + b"Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\n\r\n", "/x")):
            with self.subTest(name):
                self.e.clear()
                c = self.client(self.r)
                c.send(data)
                self.assertLess(c.read().status, 400)
                if path:
                    self.assertEqual(self.e.requests[-1].path, path)
                c.send(request("GET", "/again"))
                self.assertEqual(c.read().status, 200)
                c.close()

    def test_empty_lines_before_a_local_request_are_fine(self):
        c = self.client(self.r)
        c.send(b"\r\n" + request("GET", "/health"))
        self.assertEqual(c.read().status, 200)
        c.send(b"\r\n\r\n" + request("GET", "/v1/models"))
        self.assertEqual(c.read().status, 200)

    def test_an_incomplete_request_reaches_no_engine(self):
        whole = request("POST", "/v1/chat/completions", b'{"model":"m","messages":[]}')
        for n in (1, 10, len(whole) - 28, len(whole) - 1):
            c = self.client(self.r)
            c.send(whole[:n])
            c.close() if n % 2 else c.reset()
        self.r.quiet()
        self.assertEqual(self.e.requests, [])
        self.assertEqual(self.r.get("/x").status, 200)

    def test_many_randomly_damaged_heads_do_no_harm(self):
        """A small fuzz with a fixed seed: every answer is HTTP, the router lives."""
        import random
        rng = random.Random(7)
        # Not the shared router: an abandoned request may reach the engine only after this test.
        r = self.keep(Router([self.keep(Engine())], "--other-paths", "pass"))
        seeds = [d for d, _ in REFUSED.values() if len(d) < 400]
        seeds.append(request("POST", "/v1/chat/completions",
                             b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'))
        for _ in range(300):
            data = bytearray(rng.choice(seeds))
            for _ in range(rng.randrange(1, 4)):
                at = rng.randrange(len(data))
                data[at:at + rng.randrange(2)] = bytes([rng.choice(b"\r\n\0 :;,%/a0\xff")])
            c = Client(r.port)
            c.sock.settimeout(0.2)
            try:
                c.send(bytes(data))
                c.sock.shutdown(1)
                c.read()
            except (OSError, Cut):
                pass
            c.close()
        self.assertEqual(r.get("/health").status, 200)
        r.quiet()


class Order(Case):
    """Keep-alive, pipelines, HTTP/1.0, HEAD."""

    @classmethod
    def set_up(cls):
        cls.e = cls.shared(Engine())
        cls.r = cls.shared(Router([cls.e], "--other-paths", "pass"))

    def setUp(self):
        super().setUp()
        self.e.clear()

        def echo(asked):
            body = asked.read_body()
            asked.send(answer(200, asked.path.encode() + b" " + body))
        self.e.handler = echo

    def test_a_pipeline_torn_into_odd_pieces_keeps_its_order(self):
        data = b"".join(
            request("POST", "/%d" % i, chunked(b"c" * i, 3), [("Transfer-Encoding", "chunked")])
            if i % 2 else request("POST", "/%d" % i, b"c" * i) for i in range(12))
        c = self.client(self.r)
        step = 1
        while data:
            c.send(data[:step])
            data = data[step:]
            step = step * 3 % 41 + 1
        for i in range(12):
            self.assertEqual(c.read().body, b"/%d %s" % (i, b"c" * i))

    def test_a_very_long_pipeline_is_answered_to_its_end(self):
        """Longer than the buffer for a pipeline: the rest waits in the kernel."""
        n = 3000
        c = self.client(self.r)
        data = request("GET", "/health", headers=[("X-Pad", "p" * 60)])
        done = []

        def reader():
            for _ in range(n):
                done.append(c.read().status)
        import threading
        t = threading.Thread(target=reader)
        t.start()
        c.send(data * n)
        t.join(30)
        self.assertEqual(done, [200] * n)

    def test_connection_close_is_obeyed(self):
        c = self.client(self.r)
        got = c.ask("GET", "/a", headers=[("Connection", "close")])
        self.assertEqual(got.get("connection"), "close")
        self.assertTrue(c.is_closed())

    def test_data_after_a_closing_request_is_ignored(self):
        c = self.client(self.r)
        c.send(request("GET", "/a", headers=[("Connection", "close")]) + request("GET", "/b"))
        self.assertEqual(c.read().body, b"/a ")
        self.assertTrue(c.is_closed())
        self.assertEqual([a.path for a in self.e.requests], ["/a"])

    def test_http_1_0_closes_unless_keep_alive_is_requested(self):
        c = self.client(self.r)
        got = c.ask("GET", "/a", version="1.0")
        self.assertEqual((got.status, got.body, got.get("connection")), (200, b"/a ", "close"))
        self.assertTrue(c.is_closed())
        c = self.client(self.r)
        for path in ("/a", "/b"):
            got = c.ask("GET", path, headers=[("Connection", "keep-alive")], version="1.0")
            self.assertEqual(got.get("connection"), "keep-alive")
        self.assertEqual(c.ask("GET", "/health", version="1.0").get("connection"), "close")
        self.assertTrue(c.is_closed())

    def test_http_1_0_needs_no_host(self):
        c = self.client(self.r)
        c.send(b"GET /a HTTP/1.0\r\n\r\n")
        self.assertEqual(c.read().status, 200)
        self.assertTrue(self.e.requests[0].get("host"))

    def test_204_and_304_have_no_body(self):
        for head in (b"HTTP/1.1 204 No Content\r\n\r\n",
                     b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n",
                     b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"):
            self.e.replies(head)
            c = self.client(self.r)
            self.assertIn(c.ask("GET", "/a").status, (204, 304))
            self.e.replies(answer(200, b"next"))
            self.assertEqual(c.ask("GET", "/b").body, b"next")


class Bodies(Case):
    """Request bodies in all their shapes."""

    @classmethod
    def set_up(cls):
        cls.e = cls.shared(Engine())
        cls.r = cls.shared(Router([cls.e], "--other-paths", "pass", "--body-bytes-max", "100KiB"))

    def setUp(self):
        super().setUp()
        self.e.clear()
        self.e.handler = lambda asked: asked.send(answer(200, asked.read_body()))

    def test_trailers_are_dropped(self):
        c = self.client(self.r)
        c.send(request("POST", "/a", b"3\r\nabc\r\n0\r\nX-Evil: 1\r\nX-Two: 2\r\n\r\n",
                       [("Transfer-Encoding", "chunked"), ("Trailer", "X-Evil")]))
        self.assertEqual(c.read().body, b"abc")
        asked = self.e.requests[0]
        self.assertIsNone(asked.get("x-evil"))
        self.assertIsNone(asked.get("trailer"))
        self.e.replies(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n"
                       b"2\r\nhi\r\n0\r\nX-T: 1\r\n\r\n")
        got = c.ask("GET", "/b")
        self.assertEqual((got.body, got.trailers), (b"hi", []))

    def test_expect_continue_of_a_refused_request_gets_the_refusal(self):
        c = self.client(self.r)
        c.send(request("POST", "/sleep", None, [("Expect", "100-continue"), ("Content-Length", "5")]))
        self.assertEqual(c.read().status, 403)
        c = self.client(self.r)
        c.send(request("POST", "/a", None,
                       [("Expect", "100-continue"), ("Content-Length", "200000")]))
        self.assertEqual(c.read().status, 413)
        self.assertTrue(c.is_closed())

    def test_http_1_0_gets_no_100(self):
        c = self.client(self.r)
        c.send(request("POST", "/a", b"hi", [("Expect", "100-continue")], version="1.0"))
        self.assertEqual(c.read().body, b"hi")

    def test_a_body_at_the_limit_passes(self):
        c = self.client(self.r)
        self.assertEqual(len(c.ask("POST", "/a", b"x" * 102400).body), 102400)

    def test_an_empty_body_keeps_its_length(self):
        c = self.client(self.r)
        c.ask("POST", "/a", b"")
        self.assertEqual(self.e.requests[0].get("content-length"), "0")
        c.send(request("POST", "/b", b"0\r\n\r\n", [("Transfer-Encoding", "chunked")]))
        self.assertEqual(c.read().status, 200)
        self.assertEqual(self.e.requests[1].get("content-length"), "0")
        c.send(b"POST /c HTTP/1.1\r\nHost: a\r\n\r\n")
        self.assertEqual(c.read().status, 200)

    def test_bodies_of_many_sizes_pass_unchanged(self):
        c = self.client(self.r)
        for n in (1, 4095, 4096, 4097, 16384, 16385, 65535, 65536, 65537, 100000):
            body = bytes(i * 7 & 255 for i in range(n))
            self.assertEqual(c.ask("POST", "/a", body).body, body, n)
            c.send(request("POST", "/v1/embeddings", chunked(body, 1000),
                           [("Transfer-Encoding", "chunked")]))
            self.assertEqual(c.read().body, body, n)

    def test_a_get_with_a_body_passes(self):
        got = self.client(self.r).ask("GET", "/a", b"body")
        self.assertEqual(got.body, b"body")


if __name__ == "__main__":
    unittest.main()
