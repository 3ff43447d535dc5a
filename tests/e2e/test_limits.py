"""Slow, many and large clients: the limit that applies, and its answer."""

import contextlib
import json
import os
import re
import resource
import select
import socket
import subprocess
import threading
import time
import unittest

from lib import (HOST, LIMIT, Case, Cut, Engine, Router, answer, binary, chunk, quiet_for, request, slow_ms, stopped,
                 wait_for)


class Strangers:
    """Keeps this number of connections open, from several addresses of the loopback: each sends the same and then nothing."""

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

    def test_a_head_that_trickles_gets_408(self):
        c = self.client(self.r)
        data = b"GET /a HTTP/1.1\r\nHost: a\r\nX: " + b"y" * 1000
        start = time.monotonic()
        for i in range(len(data)):
            c.send(data[i:i + 1])
            if not c.is_open():
                break
        self.assertEqual(c.read().status, 408)
        self.assertLess(time.monotonic() - start, 30)  # all of it would take 50

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

    def test_after_a_pause_waiting_requests_are_read_before_new_connections(self):
        r = self.router([self.e], "--other-paths", "pass", "--connections-max", "1", wait_up=False)
        wait_for(lambda: r.events("replica_up"), "the replica")
        early = self.client(r)
        wait_for(lambda: r.metric("connections_open") == 2, "the early one")  # and the one that reads the metric
        with stopped(r):
            self.client(r)
            early.send(request("GET", "/a"))
            quiet_for(0.15, "it was idle for longer than makes a connection go (0.1 s) when the router goes on")
        self.assertEqual(early.read().status, 200)

    def test_slow_heads_and_slow_bodies_give_way_to_new_connections(self):
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
                    self.assertGreaterEqual(served, 15, (half.strip(), addresses))  # a busy machine loses one now and then

    def test_connections_of_one_client_are_limited(self):
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
        piece = b"x" * (1 << 20)
        for _ in range(size // len(piece)):
            c.send(piece)
        got = c.read()
        self.assertEqual((got.status, got.get("x-grapevine-reason"), got.get("x-grapevine-limit")),
                         (413, "body_limit", "body-bytes-max"))

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

    def test_a_request_waits_in_the_queue_for_a_full_replica(self):
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
        self.assertRegex(table, r"(?m)^in flight  1 of 65536 \(requests-max\), at most 1 at")
        self.assertRegex(table, r"(?m)^waiting    2 of 1000 \(queue-max\), for at most 30 s")
        self.assertRegex(table, r"(?m)^MODEL +REQUESTS +LONGEST s +WAIT FOR\nm +2 +\d+\.\d +room$")
        raw = json.loads(subprocess.check_output(gvctl + ["--json", "queue"]))
        self.assertEqual(raw["queue_length"], 2)
        go.set()
        for c in (first, second, third):
            self.assertEqual(c.read().status, 200)
        self.assertEqual(r.metric("queue_length"), 0)
        self.assertEqual(r.metric("queue_wait_seconds_count"), 2)
        r.quiet()


class Files(Case):
    """Descriptors: the router knows the shortage, and the admin port still answers."""

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
                for words in (["status"], ["status", "-o", "json"], ["events"], ["config"], ["config", "-o", "json"])]
        self.assertRegex(said[0], r"refused +%d connections? since the start: over connections-max" % refused)
        self.assertEqual(list(json.loads(said[1])["connections_refused"].values()), [refused])
        self.assertIn("connections-max is lowered from 10000 to 23: at most 100 files may be open", said[2])
        self.assertRegex(said[3], r"\nconnections-max: 23 +# default; lowered from 10000: at most 100 files may be open")
        self.assertEqual(json.loads(said[4])["connections-max"],
                         {"value": "23", "from": "default", "configured": "10000",
                          "lowered_by": "at most 100 files may be open (ulimit -n)"})
        for c in held:
            self.assertEqual(c.send("}").read().status, 200)

    def test_check_config_reports_the_lowered_limit(self):
        done = subprocess.run(["sh", "-c", 'ulimit -n 100; exec "$@"', "sh", binary("grapevine"),
                               "--replica", self.e.url, "--check-config"],
                              capture_output=True, text=True, check=True, timeout=LIMIT)
        self.assertRegex(done.stdout, r"\nconnections-max: 23 +# default; lowered from 10000: "
                                      r"at most 100 files may be open \(ulimit -n\)\n")
        self.assertEqual(done.stdout.count("lowered"), 1)

    def test_without_free_descriptors_the_router_waits(self):
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
        taken = "for n in {30..70}; do eval exec $n'</dev/null'; done"  # the admin port has fewer connections
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

    def test_a_descriptor_shortage_is_not_a_replicas_failure(self):
        r = self.router([self.e])
        c = self.client(r)
        self.assertEqual(c.ask("GET", "/health").status, 200)  # it is accepted
        limits = resource.prlimit(r.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(r.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
        c.send(request("POST", "/v1/completions", b'{"model":"m","prompt":"x"}'))
        told = r.wait_event("local_shortage")
        self.assertEqual((told["of"], told["replica"]), ("files", self.e.name))
        self.assertIn("LimitNOFILE", told["want"])
        resource.prlimit(r.pid, resource.RLIMIT_NOFILE, limits)
        self.assertEqual(c.read().status, 200)
        self.assertEqual(c.post("/v1/completions", {"model": "m", "prompt": "x"}).status, 200)
        self.assertEqual(r.metric("replica_probe_failures_total"), 0)
        self.assertEqual(r.events("replica_down"), [])
        self.assertEqual(r.metric('local_shortage{of="files"}'), 1)
        self.assertEqual(r.metric("retries_total"), 0)


if __name__ == "__main__":
    unittest.main()
