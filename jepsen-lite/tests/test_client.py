"""The client records what arrived: a complete answer, a cut one, a malformed one, or more than one."""

import os
import socket
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from lab.client import Connection, ask  # noqa: E402

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


TOKEN = chunk(b'data: {"id":"a","choices":[{"delta":{"content":"x"}}]}\n\n')
DONE = chunk(b"data: [DONE]\n\n")
END = b"0\r\n\r\n"


class Server:
    """Answers each connection with the next script: bytes, or a function of the socket."""

    def __init__(self, *scripts):
        self.scripts, self.requests = scripts, []
        self.sock = socket.create_server(("127.0.0.1", 0))
        self.port = self.sock.getsockname()[1]
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        for script in self.scripts:
            sock = self.sock.accept()[0]
            for part in script if isinstance(script, list) else [script]:
                data = b""
                while b"\r\n\r\n" not in data:
                    data += sock.recv(65536)
                self.requests.append(data)
                if callable(part):
                    part(sock)
                else:
                    sock.sendall(part)
            sock.close()

    def close(self):
        self.sock.close()
        self.thread.join(10)


class Client(unittest.TestCase):
    def serve(self, *scripts):
        server = Server(*scripts)
        self.addCleanup(server.close)
        return server

    def get(self, script, **more):
        server = self.serve(script)
        a = ask(None, "127.0.0.1", server.port, "GET", "/x", {"x-jepsen-op": "7"}, timeout=10, **more)
        self.request = server.requests[0]
        return a

    def test_an_answer_complete_by_its_length(self):
        a = self.get(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\nx-a: 2\r\n\r\nhello")
        self.assertEqual((a.status, a.body, a.framed, a.finished, a.error), (200, b"hello", True, True, None))
        self.assertEqual(a.headers["x-a"], "1, 2")
        self.assertIn(b"x-jepsen-op: 7\r\n", self.request)

    def test_a_complete_stream(self):
        a = self.get(CHUNKED + TOKEN + DONE + END)
        self.assertEqual((a.finished, a.last, a.framed, a.tokens, a.failed), (True, True, True, 1, False))
        self.assertEqual([data for _, data in a.events][1], "[DONE]")
        self.assertIsNotNone(a.token_s)

    def test_a_stream_in_small_pieces(self):
        def slowly(sock):
            for byte in CHUNKED + TOKEN + DONE + END:
                sock.sendall(bytes([byte]))
        a = self.get(slowly)
        self.assertEqual((a.finished, a.tokens, len(a.events)), (True, 1, 2))

    def test_a_stream_without_its_last_event(self):
        a = self.get(CHUNKED + TOKEN + END)
        self.assertEqual((a.framed, a.last, a.finished, a.error), (True, False, False, None))

    def test_a_cut_after_the_last_event(self):
        a = self.get(CHUNKED + TOKEN + DONE)
        self.assertEqual((a.framed, a.last, a.finished, a.error), (False, True, True, "closed"))

    def test_a_cut_in_the_middle_of_an_answer(self):
        short = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhell"
        for data in (CHUNKED + TOKEN + b"20\r\ndata: {", short, HEAD, b""):
            a = self.get(data)
            self.assertEqual((a.finished, a.error), (False, "closed"), data)

    def test_an_error_event(self):
        a = self.get(CHUNKED + TOKEN + chunk(b'data: {"error":{"message":"no","code":502}}\n\n'))
        self.assertEqual((a.failed, a.finished), (True, False))

    def test_reset(self):
        def reset(sock):
            sock.sendall(CHUNKED + TOKEN)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.assertIn(self.get(reset).error, ("reset", "closed"))

    def test_refused(self):
        with socket.socket() as s:  # bound, and not listening: no other process gets the port
            s.bind(("127.0.0.1", 0))
            a = ask(None, "127.0.0.1", s.getsockname()[1], "GET", "/", timeout=10)
        self.assertEqual((a.error, a.sent, a.status), ("refused", False, 0))

    def test_malformed(self):
        for data in (b"HTTP/1.1 20 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", b"garbage\r\n\r\n",
                     b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
                     CHUNKED + b"xyz\r\n", CHUNKED + b"1\r\nabc\r\n"):
            self.assertEqual(self.get(data).error, "malformed", data)

    def test_extra_bytes_after_an_answer(self):
        a = self.get(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n")
        self.assertEqual((a.finished, a.body, a.extra), (True, b"ok", b"HTTP/1.1 200 OK\r\n"))

    def test_an_answer_that_ends_with_its_connection(self):
        a = self.get(b"HTTP/1.1 200 OK\r\n\r\nall of it")
        self.assertEqual((a.finished, a.body), (True, b"all of it"))

    def test_an_interim_answer(self):
        a = self.get(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        self.assertEqual((a.status, a.body), (200, b"ok"))

    def test_the_client_times_out(self):
        server = self.serve(lambda sock: sock.recv(1))
        a = ask(None, "127.0.0.1", server.port, "GET", "/", timeout=0.1)
        self.assertEqual((a.error, a.sent), ("timeout", True))

    def test_the_client_leaves_after_some_events(self):
        over = []

        def endless(sock):
            sock.sendall(CHUNKED)
            try:
                while True:
                    sock.sendall(TOKEN)
            except OSError:
                over.append(True)
        for by in ("fin", "reset"):
            a = self.get(endless, leave_events=3, leave_by=by)
            self.assertEqual((a.error, len(a.events)), ("left", 3))
        for _ in range(1000):
            if len(over) == 2:
                return
            time.sleep(0.01)
        self.fail("the server did not see its clients leave")

    def test_two_requests_at_once(self):
        """The second answer may arrive with the first, and is kept for its reader."""
        one, two = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\none", b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\ntwo"
        server = self.serve(one + two)
        c = Connection(None, "127.0.0.1", server.port)
        a = c.ask("GET", "/one", behind=("GET", "/two"))
        b = c.ask("GET", "/two", sent=True)
        c.close()
        self.assertEqual((a.body, a.extra, b.body, b.reused), (b"one", b"", b"two", True))
        self.assertEqual(server.requests[0].count(b"GET /"), 2)

    def test_a_second_answer_that_does_not_come(self):
        server = self.serve(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\none")
        c = Connection(None, "127.0.0.1", server.port)
        c.ask("GET", "/one", behind=("GET", "/two"))
        b = c.ask("GET", "/two", sent=True)
        self.assertEqual((b.status, b.error, b.reused), (0, "closed", True))

    def test_the_client_reads_nothing_for_a_while(self):
        """Bytes sent meanwhile arrive afterwards."""
        a = self.get(CHUNKED + TOKEN * 3 + DONE + END, sleep_s=1)
        self.assertTrue(a.finished)
        self.assertEqual(a.tokens, 3)
        self.assertGreaterEqual(a.end_s, 1)

    def test_the_client_leaves_after_some_time(self):
        a = self.get(lambda sock: sock.recv(1), leave_s=0.05)
        self.assertEqual((a.error, a.sent, a.status), ("left", True, 0))

    def test_a_connection_is_kept_alive(self):
        ok = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
        server = self.serve([ok, ok, ok.replace(b"OK", b"OK\r\nconnection: close")])
        c = Connection(None, "127.0.0.1", server.port)
        answers = [c.ask("GET", "/", timeout=10) for _ in range(3)]
        self.assertEqual([a.reused for a in answers], [False, True, True])
        self.assertEqual([a.finished for a in answers], [True] * 3)
        self.assertFalse(c.open)


if __name__ == "__main__":
    unittest.main()
