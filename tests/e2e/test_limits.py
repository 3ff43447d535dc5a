"""Slow, many and large clients: which limit bites, and what it answers."""

import contextlib
import json
import os
import re
import resource
import select
import signal
import socket
import subprocess
import threading
import time
import unittest

from lib import (HOST, LIMIT, SLOW, Case, Client, Cut, Engine, Router, answer, binary, chunk, chunked,
                 request, slow_ms, wait_for)


class Strangers:
    """Keeps so many connections open, from several addresses of the loopback: each sends the same and then nothing."""

    def __init__(self, port, sends, count, addresses):
        self.port, self.sends, self.count, self.addresses = port, sends, count, addresses
        self.opened = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def open_one(self):
        self.opened += 1
        s = socket.socket()
        s.bind(("127.0.1.%d" % (1 + self.opened % self.addresses), 0))
        s.connect((HOST, self.port))
        s.send(self.sends)
        return s

    def run(self):
        there = []
        while not self.over.is_set():
            closed = set(select.select(there, [], [], 0.02)[0])
            for s in closed:
                s.close()
            there = [s for s in there if s not in closed]
            while len(there) < self.count and not self.over.is_set():
                with contextlib.suppress(OSError):
                    there.append(self.open_one())
        for s in there:
            s.close()


class Limits(Case):
    """Slow, many and large clients."""

    @classmethod
    def set_up(cls):
        cls.e = cls.shared(Engine())
        cls.r = cls.shared(Router(
            [cls.e], "--other-paths", "pass", "--client-head-timeout", "300ms",
            "--client-body-timeout", slow_ms(1500),
            "--client-write-timeout", "400ms", "--head-bytes-max", "2KiB", "--headers-max", "20"))

    def setUp(self):
        super().setUp()
        self.e.clear()
        self.e.handler = lambda asked: (asked.read_body(), asked.send(answer(200, b"ok")))

    def test_a_head_that_does_not_come_to_its_end_gets_408(self):
        c = self.client(self.r)
        c.send(b"GET /a HTTP/1.1\r\nHo")
        self.assertEqual(c.read().status, 408)
        self.assertTrue(c.is_closed())

    def test_a_head_that_trickles_gets_408_although_bytes_come(self):
        c = self.client(self.r)
        data = b"GET /a HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 1000
        start = time.monotonic()
        for i in range(len(data)):
            c.send(data[i:i + 1])
            if not c.is_open():
                break
        self.assertEqual(c.read().status, 408)
        self.assertLess(time.monotonic() - start, 30)  # all of it would take 50

    def test_a_trickling_head_after_a_pipelined_answer_gets_408_too(self):
        c = self.client(self.r)
        c.send(request("GET", "/health") + b"GET /a HTT")
        self.assertEqual(c.read().status, 200)
        self.assertEqual(c.read().status, 408)

    def test_a_body_that_stops_gets_408(self):
        for path in ("/a", "/v1/chat/completions"):
            for how in (("Content-Length", "100"), ("Transfer-Encoding", "chunked")):
                c = self.client(self.r)
                c.send(request("POST", path, None, [how]) + b"5\r\n")
                self.assertEqual(c.read().status, 408, (path, how))
                self.assertTrue(c.is_closed())
        self.r.quiet()

    def test_a_slow_body_that_goes_on_is_fine(self):
        c = self.client(self.r)
        c.send(request("POST", "/a", None, [("Content-Length", "10")]))
        for _ in range(10):
            time.sleep(0.2 * SLOW)
            c.send(b"x")
        self.assertEqual(c.read().status, 200)

    def test_an_idle_connection_is_closed_in_silence(self):
        r = self.router([self.e], "--other-paths", "pass", "--client-idle-timeout", slow_ms(1000))
        c = self.client(r)
        self.assertTrue(c.is_closed())
        c = self.client(r)
        self.assertEqual(c.ask("GET", "/a").status, 200)
        self.assertTrue(c.is_closed())

    def test_waiting_for_the_engine_is_not_idling(self):
        r = self.router([self.e], "--other-paths", "pass", "--client-idle-timeout", slow_ms(800),
                        "--client-head-timeout", slow_ms(800), "--client-body-timeout", slow_ms(800))

        def slow(asked):
            asked.read_body()
            time.sleep(1.6 * SLOW)
            asked.send(answer(200, b"late"))
        self.e.handler = slow
        self.assertEqual(self.client(r).ask("GET", "/a").body, b"late")
        self.assertEqual(self.client(r).ask("POST", "/v1/completions", b"{}").body, b"late")

    def test_a_client_that_does_not_read_loses_its_connection(self):
        def endless(asked):
            asked.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            try:
                while True:
                    asked.send(chunk(b"x" * 65536))
            except OSError:
                asked.gone.set()
        self.e.handler = endless
        before = self.r.metric("client_timeouts_total")
        c = self.client(self.r, receive_buffer=4096)
        c.send(request("GET", "/a"))
        asked = self.e.wait_request()
        self.assertTrue(asked.gone.wait(LIMIT), "the engine was not let go")
        self.r.quiet()
        self.assertEqual(self.r.metric("client_timeouts_total"), before + 1)

    def test_an_oversized_head_gets_431(self):
        c = self.client(self.r)
        c.send(b"GET /a HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 3000 + b"\r\n\r\n")
        got = c.read()
        self.assertEqual((got.status, got.get("x-grapevine-limit")), (431, "head-bytes-max"))
        self.assertTrue(c.is_closed())
        c = self.client(self.r)
        c.send(b"GET /a HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 20 + b"\r\n")
        got = c.read()
        self.assertEqual((got.status, got.get("x-grapevine-limit")), (431, "headers-max"))

    def test_a_head_under_the_limit_passes(self):
        got = self.client(self.r).ask("GET", "/a", None, [("X", "y" * 1900)])
        self.assertEqual(got.status, 200)

    def test_connections_beyond_the_limit_get_503_until_others_go(self):
        r = self.router([self.e], "--other-paths", "pass", "--connections-max", "3",
                        wait_up=False)
        wait_for(lambda: r.events("replica_up"), "the replica")
        held = [self.client(r) for _ in range(3)]
        for c in held:  # none of them is idle
            c.send("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n")
        wait_for(lambda: r.metric("requests_open") == 4, "requests under way")
        extra = self.client(r)
        got = extra.read()
        self.assertEqual((got.status, got.get("x-grapevine-reason"), got.get("x-grapevine-limit")),
                         (503, "connections", "connections-max"))
        self.assertTrue(extra.is_closed())
        for c in held:
            self.assertEqual(c.send("x").read().status, 200)
        held[0].close()

        def another():
            c = Client(r.port)
            try:
                c.send(request("GET", "/a"))
                return c.read().status == 200
            except (OSError, Cut):
                return False
            finally:
                c.close()
        wait_for(another, "room for another connection")

    def test_the_connection_that_is_idle_longest_makes_room(self):
        r = self.router([self.e], "--other-paths", "pass", "--connections-max", "3",
                        wait_up=False)
        wait_for(lambda: r.events("replica_up"), "the replica")
        silent = [self.client(r) for _ in range(2)]
        used = self.client(r)
        self.assertEqual(used.ask("GET", "/a").status, 200)
        time.sleep(0.3 * SLOW)  # what has just come stays
        late = self.client(r)
        self.assertEqual(late.ask("GET", "/a").status, 200)
        self.assertTrue(silent[0].is_closed())
        for c in (silent[1], used, late):
            self.assertEqual(c.ask("GET", "/a").status, 200)
        self.assertEqual(r.metric("connections_evicted_total"), 1)
        self.assertEqual(r.metric("connections_refused_total"), 0)

    def test_a_request_that_waits_through_a_standstill_is_read_before_more_come_in(self):
        r = self.router([self.e], "--other-paths", "pass", "--connections-max", "1", wait_up=False)
        wait_for(lambda: r.events("replica_up"), "the replica")
        early = self.client(r)
        wait_for(lambda: r.metric("connections_open") == 2, "the early one")  # and the one of this look
        r.signal(signal.SIGSTOP)
        try:
            wait_for(lambda: os.waitid(os.P_PID, r.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT), "that it stops")
            self.client(r)
            early.send(request("GET", "/a"))
            time.sleep(0.3)  # as long as makes an idle one go
        finally:
            r.signal(signal.SIGCONT)
        self.assertEqual(early.read().status, 200)

    def test_slow_heads_and_slow_bodies_make_room(self):
        """Strangers hold more connections than may be open, each with half a head or half a body, and come again when
        they are closed, from one address and from several. Bystanders are served all the same."""
        r = self.router([self.e], "--connections-max", "300", "--client-body-timeout", "60s",
                        "--client-head-timeout", "60s", "--other-paths", "pass")
        halves = (b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nX-",
                  b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 4000\r\n\r\n" + b" " * 2000)
        for half in halves:
            for addresses in (1, 64):
                with Strangers(r.port, half, 480, addresses) as strangers:
                    wait_for(lambda: strangers.opened >= 480, "the strangers")
                    # A body is slow when nothing came of it for a second.
                    before = r.metric("connections_evicted_total")
                    wait_for(lambda: r.metric("connections_evicted_total") > before + 300, "the first ones go")
                    served = 0
                    for i in range(20):
                        with contextlib.suppress(OSError, Cut):
                            bystander = self.client(r, source=("127.0.2.%d" % (1 + i), 0))
                            served += bystander.ask("GET", "/a").status == 200
                    self.assertGreaterEqual(served, 19, (half.strip(), addresses))

    def test_connections_of_one_client(self):
        r = self.router([self.e], "--other-paths", "pass", "--connections-per-client-max", "2",
                        wait_up=False)
        wait_for(lambda: r.events("replica_up"), "the replica")
        held = [self.client(r) for _ in range(2)]
        got = self.client(r).read()
        self.assertEqual((got.status, got.get("x-grapevine-reason"), got.get("x-grapevine-limit"),
                          got.get("retry-after")),
                         (429, "client_connections", "connections-per-client-max", "1"))
        for c in held:
            self.assertEqual(c.ask("GET", "/a").status, 200)
        self.assertEqual(r.metric("client_connections_refused_total"), 1)
        other = socket.create_connection((HOST, r.port), LIMIT, source_address=("127.0.0.2", 0))
        self.addCleanup(other.close)
        other.sendall(request("GET", "/a"))
        self.assertIn(b"200 OK", other.recv(65536))

    def test_the_proxy_protocol_names_the_client(self):
        r = self.router([self.e], "--other-paths", "pass", "--proxy-protocol", "on",
                        "--access-log", "all", wait_up=False)
        wait_for(lambda: r.events("replica_up"), "the replica")
        v2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x21\x00\x24" + socket.inet_pton(
            socket.AF_INET6, "2001:db8::5") + bytes(16) + b"\0\1\0\2"
        for header, address in ((b"PROXY TCP4 198.51.100.9 192.0.2.7 1 2\r\n", "198.51.100.9"),
                                (v2, "2001:db8::5"), (b"PROXY UNKNOWN\r\n", HOST)):
            self.e.clear()
            c = self.client(r).send(header + request("GET", "/a"))
            self.assertEqual(c.read().status, 200)
            self.assertEqual(self.e.requests[0].get("x-forwarded-for"), address)
            r.wait_event("request")
            wait_for(lambda: r.events("request")[-1]["client"] == address, address)
        c = self.client(r).send(request("GET", "/a"))
        self.assertTrue(c.is_closed())
        self.assertEqual(r.metric("proxy_headers_refused_total"), 1)
        r.wait_event("proxy_header_refused")

    def test_a_client_that_reads_after_its_whole_upload_sees_the_error(self):
        c = self.client(self.r)
        size = 65 << 20  # beyond body-bytes-max, and all the kernels' buffers
        reason = 'requests_refused_total{reason="body_limit"}'
        before = self.r.metric(reason)
        c.send(request("POST", "/v1/completions", None, [("Content-Length", str(size))]))
        wait_for(lambda: self.r.metric(reason) > before, "it is refused")
        time.sleep(2.2 * SLOW)  # longer than the router once listened after that
        piece = b"x" * (1 << 20)
        for _ in range(size // len(piece)):
            c.send(piece)
        got = c.read()
        self.assertEqual((got.status, got.get("x-grapevine-reason"), got.get("x-grapevine-limit")),
                         (413, "body_limit", "body-bytes-max"))

    def test_a_body_that_trickles_gets_408(self):
        r = self.router([self.e], "--client-body-total-timeout", "900ms")
        c = self.client(r)
        c.send(request("POST", "/v1/completions", None, [("Content-Length", "100000")]))
        while not select.select([c.sock], [], [], 0.1)[0]:
            c.send(b"x")
        got = c.read()
        self.assertEqual((got.status, got.get("x-grapevine-reason"), got.get("x-grapevine-limit")),
                         (408, "slow_upload", "client-body-total-timeout"))

    def test_slow_uploads_do_not_keep_others_out(self):
        r = self.router([self.e], "--buffered-bytes-max", "16MiB", "--body-bytes-max", "4MiB")
        slow = []
        for _ in range(4):
            c = self.client(r)
            c.send(request("POST", "/v1/completions", None, [("Content-Length", str(4 << 20))]) +
                   b'{"model":"m","prompt":"' + b"x" * (3900 << 10))
            slow.append(c)
        wait_for(lambda: r.metric("body_bytes_held") > 15 << 20, "all of it held")
        time.sleep(1.1 * SLOW)
        body = b'{"model":"m","prompt":"' + b"x" * (3 << 20) + b'"}'
        self.assertEqual(self.client(r).ask("POST", "/v1/completions", body).status, 200)
        refused = [c for c in slow if not c.is_open()]
        self.assertTrue(refused)
        got = refused[0].read()
        self.assertEqual((got.status, got.get("x-grapevine-reason"), got.get("x-grapevine-limit")),
                         (503, "slow_upload", "buffered-bytes-max"))
        for c in slow:
            c.close()

    def crowded(self, *args):
        """A router whose one replica takes one request, with that one under way."""
        go = threading.Event()
        self.addCleanup(go.set)

        def handler(asked):
            asked.read_body()
            go.wait(20)
            asked.send(answer(200, b"{}"))
        self.e.handler = handler
        r = self.router([self.e], "--replica-requests-max", "1", *args)
        first = self.client(r)
        first.send(request("POST", "/v1/completions", b'{"model":"m","prompt":"a"}'))
        self.e.wait_request()
        return r, first, go

    def waiting(self, r):
        c = self.client(r)
        before = r.metric("queue_length")
        c.send(request("POST", "/v1/completions", b'{"model":"m","prompt":"b"}'))
        wait_for(lambda: r.metric("queue_length") == before + 1, "a request in the queue")
        return c

    def test_a_request_waits_for_room(self):
        r, first, go = self.crowded()
        second, third = self.waiting(r), self.waiting(r)
        shown = r.admin("GET", "/queue").json
        self.assertEqual(shown["queue_length"], 2)
        self.assertEqual(shown["requests_in_flight"], 1)
        self.assertEqual([(w["model"], w["for"], w["requests"]) for w in shown["waiting"]],
                         [("m", "room", 2)])
        admin = "http://%s:%d" % (HOST, r.admin_port)
        gvctl = [binary("gvctl"), "--admin", admin]
        table = subprocess.check_output(gvctl + ["queue"], text=True)
        self.assertRegex(table, r"(?m)^in flight  1 of 65536 \(requests-max\), at one replica 1 at")
        self.assertRegex(table, r"(?m)^waiting    2 of 1000 \(queue-max\), for 30 s at most")
        self.assertRegex(table, r"(?m)^MODEL +REQUESTS +LONGEST s +WAIT FOR\nm +2 +\d+\.\d +room$")
        raw = json.loads(subprocess.check_output(gvctl + ["--json", "queue"]))
        self.assertEqual(raw["queue_length"], 2)
        go.set()
        for c in (first, second, third):
            self.assertEqual(c.read().status, 200)
        self.assertEqual(r.metric("queue_length"), 0)
        self.assertEqual(r.metric("queue_wait_seconds_count"), 2)
        r.quiet()

    def test_a_full_queue_is_429(self):
        r, first, go = self.crowded("--queue-max", "1")
        second = self.waiting(r)
        got = self.client(r).ask("POST", "/v1/completions", b'{"model":"m","prompt":"c"}')
        self.assertEqual(got.status, 429)
        self.assertEqual(got.get("x-grapevine-reason"), "queue_full")
        self.assertEqual(got.get("x-grapevine-limit"), "queue-max")
        self.assertIn(int(got.get("retry-after")), range(1, 61))
        logged = r.wait_logged("/v1/completions")
        self.assertEqual((logged["status"], logged["reason"], logged["limit"]),
                         (429, "queue_full", "queue-max"))
        self.assertEqual(r.metric('requests_refused_total{reason="queue_full"}'), 1)
        second.close()  # it gives its place to another
        wait_for(lambda: r.metric("queue_length") == 0, "the queue to be empty")
        third = self.waiting(r)
        go.set()
        self.assertEqual((first.read().status, third.read().status), (200, 200))
        r.quiet()

    def test_without_a_queue_the_limit_itself_is_named(self):
        for args, limit in (((), "replica-requests-max"),
                            (("--upstream-connections-max", "1", "--replica-requests-max", "0"),
                             "upstream-connections-max"),
                            (("--requests-max", "1"), "requests-max")):
            self.e.clear()
            r, _, go = self.crowded("--queue-max", "0", *args)
            got = self.client(r).ask("POST", "/v1/completions", b'{"model":"m","prompt":"c"}')
            self.assertEqual((got.status, got.get("x-grapevine-limit")), (429, limit))
            go.set()
            r.quiet()

    def test_time_in_the_queue_ends_with_504(self):
        r, _, go = self.crowded("--queue-timeout", "200ms")
        got = self.client(r).ask("POST", "/v1/completions", b'{"model":"m","prompt":"c"}')
        self.assertEqual(got.status, 504)
        self.assertEqual(got.get("x-grapevine-reason"), "queue_timeout")
        self.assertEqual(got.get("x-grapevine-limit"), "queue-timeout")
        go.set()
        r.quiet()

    def test_one_that_waits_is_answered_when_the_router_stops(self):
        r, _, _ = self.crowded("--drain-delay", "0", "--drain-timeout", "300ms")
        second = self.waiting(r)
        r.expected = 1  # what was under way is cut
        r.signal(signal.SIGTERM)
        got = second.read()
        self.assertEqual((got.status, got.get("x-grapevine-reason")), (503, "stopping"))

    def test_bodies_beyond_the_memory_limit_are_shed(self):
        r = self.router([self.e], "--buffered-bytes-max", "512KiB",
                        "--body-bytes-max", "400KiB", "--other-paths", "pass")
        body = b'{"model":"m","prompt":"' + b"x" * 300000
        one = self.client(r)
        one.send(request("POST", "/v1/completions", None, [("Content-Length", "400000")]) + body)
        wait_for(lambda: r.metric("body_bytes_held") > 290000, "the first body held")
        two = self.client(r)
        try:
            two.send(request("POST", "/v1/completions", body + b'"}'))
        except OSError:
            pass
        got = two.read()
        self.assertEqual((got.status, got.get("x-grapevine-reason"), got.get("x-grapevine-limit")),
                         (503, "memory", "buffered-bytes-max"))
        self.assertEqual(got.get("retry-after"), "1")
        one.close()
        r.quiet()
        self.assertEqual(self.client(r).ask("POST", "/v1/completions", body + b'"}').status, 200)


class Files(Case):
    """Descriptors: what is not there is known, and the admin port answers all the same."""

    def setUp(self):
        super().setUp()
        self.e = self.engine()
        self.e.replies(answer(200, b"ok"))

    def test_connections_max_is_lowered_to_what_fits(self):
        r = self.router([self.e], wrap=["sh", "-c", 'ulimit -n 100; exec "$@"', "sh"])
        short = r.wait_event("files_short")
        self.assertEqual((short["files_max"], short["connections_max"], short["used"]),
                         (100, 10000, 23))
        held = [self.client(r) for _ in range(23)]
        for c in held:  # none of them is idle
            c.send(request("POST", "/v1/completions", None, [("Content-Length", "2")]) + b"{")
        wait_for(lambda: r.metric("requests_open") == 24, "requests under way, and this one")
        for _ in range(200):
            try:
                self.client(r)
            except OSError:
                pass  # reset at once
        self.assertEqual(r.admin("GET", "/readyz").status, 200)
        self.assertEqual(r.metric("accept_failures_total"), 0)
        refused = int(r.metric("connections_refused_total"))
        self.assertGreater(refused, 0)
        said = [subprocess.run([binary("gvctl"), "--admin", "http://127.0.0.1:%d" % r.admin_port, *words],
                               capture_output=True, text=True, timeout=LIMIT).stdout
                for words in (["status"], ["status", "-o", "json"], ["events"])]
        self.assertRegex(said[0], r"refused +%d connections? since the start: .*files_short" % refused)
        self.assertEqual(list(json.loads(said[1])["connections_refused"].values()), [refused])
        self.assertIn("connections-max is lowered from 10000 to 23: at most 100 files may be open", said[2])
        for c in held:
            self.assertEqual(c.send("}").read().status, 200)

    def test_the_check_of_a_configuration_says_so(self):
        done = subprocess.run(["sh", "-c", 'ulimit -n 100; exec "$@"', "sh", binary("grapevine"),
                               "--replica", self.e.url, "--check-config"],
                              capture_output=True, text=True, check=True, timeout=LIMIT)
        self.assertIn("connections-max: 23", done.stdout)
        self.assertIn("connections-max: lowered from 10000, for open files are limited to 100",
                      done.stdout)

    def test_without_files_it_waits_and_goes_on(self):
        """libuv closes what it cannot accept, or tries for ever."""
        r = self.router([self.e])
        admin = self.client(r.admin_port)
        ask = lambda: admin.ask("GET", "/metrics", None, [("Host", HOST)]).body.decode()
        pauses = lambda: float(re.search(r"\ngrapevine_accept_pauses_total (\S+)", ask()).group(1))
        self.assertEqual(pauses(), 0)
        used = len(os.listdir("/proc/%d/fd" % r.pid))
        limits = resource.prlimit(r.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(r.pid, resource.RLIMIT_NOFILE, (used, limits[1]))
        c = self.client(r)
        c.send(request("POST", "/v1/completions", b'{"model":"m","prompt":"x"}'))
        r.wait_event("accept_paused")
        wait_for(lambda: pauses() >= 4, "pauses")
        self.assertLess(pauses(), 20)
        self.assertEqual(len(r.events("accept_paused")), 1)
        self.assertTrue(c.is_open())
        resource.prlimit(r.pid, resource.RLIMIT_NOFILE, limits)
        self.assertEqual(c.read().status, 200)

    def test_connections_into_the_reserve_are_closed(self):
        taken = "for n in {30..70}; do eval exec $n'</dev/null'; done"  # the admin port has not so many connections
        r = self.router([self.e], wrap=["bash", "-c", 'ulimit -n 100; ' + taken + '; exec "$@"', "bash"])
        files = lambda: len(os.listdir("/proc/%d/fd" % r.pid))
        ask = lambda c: c.ask("GET", "/metrics", None, [("Host", HOST)]).body.decode()
        while files() < 80:  # clients' have numbers below 75
            admin = self.client(r.admin_port)
            ask(admin)
        before = files()
        for n in range(1, 6):
            self.assertTrue(self.client(r).is_closed())
            self.assertIn("\ngrapevine_accept_pauses_total %d\n" % n, ask(admin))
        wait_for(lambda: files() <= before, "no file is left open")  # probes have one now and then

    def test_no_file_for_a_connection_to_a_replica_is_no_failure_of_it(self):
        r = self.router([self.e])
        c = self.client(r)
        self.assertEqual(c.ask("GET", "/health").status, 200)  # it is accepted
        limits = resource.prlimit(r.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(r.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
        c.send(request("POST", "/v1/completions", b'{"model":"m","prompt":"x"}'))
        told = r.wait_event("local_shortage")
        self.assertEqual((told["of"], told["replica"]), ("files", self.e.name))
        self.assertIn("LimitNOFILE", told["want"])
        time.sleep(0.3)  # it tries again meanwhile
        resource.prlimit(r.pid, resource.RLIMIT_NOFILE, limits)
        self.assertEqual(c.read().status, 200)
        self.assertEqual(c.post("/v1/completions", {"model": "m", "prompt": "x"}).status, 200)
        self.assertEqual(r.metric("replica_probe_failures_total"), 0)
        self.assertEqual(r.events("replica_down"), [])
        self.assertEqual(r.metric('local_shortage{of="files"}'), 1)
        self.assertEqual(r.metric("retries_total"), 0)


if __name__ == "__main__":
    unittest.main()
