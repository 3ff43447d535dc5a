"""TLS towards replicas: trusted and refused certificates, and the messages; sessions; sources."""

import contextlib
import hashlib
import os
import socket
import ssl
import threading
import unittest

from lib import Engine, answer, chunk, slow_ms, wait_for
from lib_http import HOST, LIMIT, SSE_HEAD
from lib_tls import Authority, TlsCase, TlsEngine
from test_tls import body_of

CHAT = "/v1/chat/completions"


class Replicas(TlsCase):
    def tls_engine(self, pair=None, **how):
        return self.keep(TlsEngine(pair or self.pair, **how))

    def behind(self, replicas, *args, **how):
        return self.router(replicas, "--replica-ca-file", self.ca.cert, "--other-paths", "pass", *args, **how)

    def test_bytes_both_ways(self):
        e, got = self.tls_engine(), []
        r = self.behind([e])
        c = self.client(r)
        for n in (1, 16384, 16385, 3_000_001):
            sent, back = body_of(n, b"up"), body_of(n, b"down")
            e.handler = lambda asked: (got.append(asked.read_body()), asked.send(answer(200, back)))
            self.assertEqual(hashlib.sha256(c.ask("POST", "/any", sent).body).digest(),
                             hashlib.sha256(back).digest())
            self.assertEqual(hashlib.sha256(got.pop()).digest(), hashlib.sha256(sent).digest())
        self.assertEqual(set(e.asked_names), {"localhost"})
        self.assertEqual(c.post(CHAT, {"model": "m"}).get("x-grapevine-replica"), e.url)
        self.assertEqual(e.requests[0].get("x-forwarded-proto"), "http")

    def test_an_upload_that_the_engine_does_not_read(self):
        """The upload exceeds all buffers: it continues when the engine reads on."""
        e, go, sent = self.tls_engine(receive_buffer=8192), threading.Event(), body_of(20 << 20)
        seen = []
        e.handler = lambda asked: (go.wait(LIMIT), seen.append(asked.read_body()), asked.send(answer(200, b"ok")))
        r = self.behind([e])
        c = self.client(r)
        out = []
        t = threading.Thread(target=lambda: out.append(c.ask("POST", "/any", sent)))
        t.start()
        e.wait_request()
        go.set()
        t.join(LIMIT)
        self.assertEqual(out[0].status, 200)
        self.assertEqual(hashlib.sha256(seen[0]).digest(), hashlib.sha256(sent).digest())

    def test_streams(self):
        e = self.tls_engine()
        e.handler = lambda asked: (asked.read_body(), asked.send(SSE_HEAD), [
            asked.send(chunk(b"data: {\"choices\":[{\"delta\":{\"content\":\"%d\"}}]}\n\n" % i)) for i in range(100)],
            asked.send(chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"))
        r = self.client(self.behind([e])).post(CHAT, {"model": "m", "stream": True})
        self.assertEqual(r.body.count(b"data: "), 101)

    def test_sessions_are_resumed(self):
        e = self.tls_engine()
        e.handler = lambda asked: (asked.read_body(), asked.send(answer(200, b"ok", [("Connection", "close")])),
                                   asked.close())
        r = self.behind([e])
        c = self.client(r)
        for _ in range(4):
            self.assertEqual(c.post(CHAT, {"model": "m"}).status, 200)
        wait_for(lambda: sum(e.handshakes) >= 3, "sessions that are resumed")
        self.assertGreaterEqual(self.count(r, "resumed_total", side="replicas"), 3)

    def fails(self, replica, reason, error, *args, ca=True):
        """The replica is refused with these words, and the other replica answers."""
        good = self.tls_engine()
        r = self.router([good], "--replica", replica, *(["--replica-ca-file", self.ca.cert] if ca else []),
                        "--retries-max", "3", *args)
        least = 1 if reason == "timeout" else 3
        line = wait_for(lambda: [x for x in r.events("replica_tls_failed") if x["replica"] == replica],
                        "why it is refused")[0]
        self.assertEqual(line["reason"], reason, line)
        self.assertRegex(line["error"], error)
        c = self.client(r)
        for _ in range(4):
            self.assertEqual(c.post(CHAT, {"model": "m"}).get("x-grapevine-replica"), good.url)
        wait_for(lambda: self.count(r, "failures_total", side="replicas", reason=reason) >= least, "more of them")
        self.assertEqual(len(r.events("replica_tls_failed")), 1)  # once a minute
        said = {"certificate": "its certificate is not trusted (replica-ca-file, replica-tls-name)",
                "name": "its certificate is not trusted (replica-ca-file, replica-tls-name)",
                "plaintext": "its port speaks no TLS (is it http://?)",
                "version": "TLS with it failed (the log says why: replica_tls_failed)"}.get(reason)
        if said:  # adding it reports the reason, and so does the list
            asked = r.admin("POST", "/replicas?replica=" + replica, b"")
            self.assertIn(said, asked.body.decode())
            wait_for(lambda: {x["name"]: x.get("why") for x in r.admin("GET", "/replicas").json}
                     [replica] == "tls", "what WHY says")
        return line

    def test_control_requests_reach_all_over_tls_and_ipv6(self):
        engines = [self.tls_engine()]
        with contextlib.suppress(OSError):  # there is no IPv6 here
            engines.append(self.keep(Engine(host="::1")))
        r = self.behind([e.url for e in engines], "--engine-control-paths", "all")
        got = self.client(r).ask("POST", "/reset_prefix_cache", b"")
        self.assertEqual((got.status, {x["replica"]: x["status"] for x in got.json["replicas"]}),
                         (200, {e.name: 200 for e in engines}))
        for e in engines:
            self.assertEqual([a.target for a in e.requests], ["/reset_prefix_cache"])

    def test_a_certificate_of_another_ca_is_refused(self):
        other = Authority(self.folder, "other-ca").pair("other")
        line = self.fails(self.tls_engine(other).url, "certificate", "unable to get local issuer certificate")
        self.assertIn("replica-ca-file", line["want"])

    def test_self_signed_needs_its_certificate_as_ca(self):
        alone = Authority(self.folder, "alone")
        e = self.tls_engine(alone)
        self.fails(e.url, "certificate", "self-signed certificate")
        r = self.router([], "--replica", e.url, "--replica-ca-file", alone.cert, "--replica-tls-name", "alone",
                        wait_up=False)
        r.wait_event("replica_up")  # a name in the subject counts if there is no other

    def test_an_expired_certificate_is_refused(self):
        self.fails(self.tls_engine(self.ca.pair("expired", days=-1)).url, "certificate", "expired")

    def test_a_certificate_with_another_name_is_refused(self):
        e = self.tls_engine(self.ca.pair("elsewhere", "DNS:elsewhere.example"))
        self.assertIn("replica-tls-name", self.fails(e.url, "name", "hostname mismatch")["want"])
        line = self.fails("https://%s:%d" % (HOST, self.tls_engine(self.ca.pair("noip", "DNS:localhost")).port),
                          "name", "IP address mismatch")
        self.assertIn("want", line)
        r = self.router([], "--replica", e.url, "--replica-ca-file", self.ca.cert,
                        "--replica-tls-name", "elsewhere.example", wait_up=False)
        r.wait_event("replica_up")
        self.assertIn("elsewhere.example", e.asked_names)
        self.assertEqual(self.client(r).post(CHAT, {"model": "m"}).status, 200)
        host = e.requests[-1].get("host")  # a server that sees two names says 421
        self.assertEqual(host, "elsewhere.example:%d" % e.port)

    def test_plaintext_and_system_cas(self):
        plain = socket.create_server((HOST, 0))
        self.addCleanup(plain.close)

        def complain():
            while True:
                try:
                    s, _ = plain.accept()
                except OSError:
                    return
                s.recv(4096)  # as uvicorn does
                s.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\nInvalid HTTP request received.")
                s.close()
        threading.Thread(target=complain, daemon=True).start()
        self.fails("https://localhost:%d" % plain.getsockname()[1], "plaintext", "wrong version number")
        silent = self.engine()  # waits for more, and the router gives up
        self.fails("https://localhost:%d" % silent.port, "timeout", "has not ended",
                   "--health-timeout", slow_ms(1100), "--upstream-connect-timeout", slow_ms(1100))
        e = self.tls_engine()
        r = self.router([], "--replica", e.url, wait_up=False)  # the system does not know the tests' CA
        self.assertEqual(r.wait_event("replica_tls_failed")["reason"], "certificate")

    def test_old_versions_are_refused(self):
        e = self.tls_engine()
        e.context.set_ciphers("ALL:@SECLEVEL=0")
        e.context.minimum_version = ssl.TLSVersion.TLSv1
        e.context.maximum_version = ssl.TLSVersion.TLSv1_1
        self.fails(e.url, "version", "protocol")

    def test_client_certificate(self):
        mine = self.ca.pair("client", "DNS:router.example", days=7)
        e = self.tls_engine(asks=self.ca)
        r = self.behind([e], *mine.flags("replica"))
        self.assertEqual(self.client(r).post(CHAT, {"model": "m"}).status, 200)
        wait_for(lambda: [x for x in r.admin("GET", "/attention").json["items"]
                          if (x["kind"], x["about"]) == ("certificate_expires", mine.cert)], "a week is left")
        r = self.behind([], "--replica", e.url, wait_up=False)
        line = r.wait_event("replica_tls_failed") if r.events("replica_tls_failed") else None
        wait_for(lambda: r.metric("replica_up") == 0, "it to be down")
        self.assertTrue(line is None or "replica-cert" in line["want"])

    def test_a_ca_that_changes(self):
        """Only replicas under the new CA are trusted, and no earlier session."""
        old, new = Authority(self.folder, "old-ca"), Authority(self.folder, "new-ca")
        e, next_one = self.tls_engine(old.pair("old-e")), self.tls_engine(new.pair("new-e"))
        r = self.router([e], "--replica", next_one.url, "--replica-ca-file", old.cert, wait_up=False)
        wait_for(lambda: [x for x in r.events("replica_up") if x["replica"] == e.url], "the old one")
        wait_for(lambda: r.events("replica_tls_failed"), "the other refused")
        with open(new.cert, "rb") as f:
            data = f.read()
        with open(old.cert + ".new", "wb") as f:
            f.write(data)
        os.rename(old.cert + ".new", old.cert)
        wait_for(lambda: [x for x in r.events("replica_up") if x["replica"] == next_one.url], "the new one")
        for s in list(e.socks):  # open connections stay; it comes back with its session
            s.shutdown(socket.SHUT_RDWR)
        wait_for(lambda: [x for x in r.events("replica_tls_failed") if x["replica"] == e.url], "the old one refused")

    def test_an_answer_cut_without_close_notify_is_incomplete(self):
        """An answer that ends with the connection."""
        def handler(asked):
            asked.read_body()
            asked.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b"part " * 20000)
            if asked.path == "/whole":
                asked.sock.unwrap()
            asked.close()
        e = self.tls_engine()
        e.handler = handler
        r = self.behind([e])
        self.assertEqual(len(self.client(r).ask("GET", "/whole").body), 100000)
        c = self.client(r)
        c.send(b"GET /cut HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertEqual(c.head().status, 200)
        with self.assertRaises(Exception):
            c.reader.chunked()
        self.assertGreater(self.count(r, "truncated_total", side="replicas"), 0)

    def test_files_and_the_admin_port_name_https_replicas(self):
        e = self.tls_engine()
        path = os.path.join(self.folder, "replicas")
        with open(path, "w") as f:
            f.write("%s#weight=2\n" % e.url)
        r = self.behind([], "--replica-file", path, wait_up=False)
        self.assertEqual(r.wait_event("replica_up")["replica"], e.url)
        second = self.tls_engine()
        self.assertEqual(r.admin("POST", "/replicas?replica=" + second.url).status, 200)
        r.wait_event("replica_up", 2)
        for path, replica in (("/drain", e.url), ("/remove", second.url)):
            self.assertIn(r.admin("POST", "%s?replica=%s" % (path, replica)).status, (200, 404))

    def test_replicas_found_by_dns_have_the_configured_name(self):
        """The replicas are known by address, and their certificate has the name."""
        e = self.tls_engine(self.ca.pair("by-name", "DNS:engines.internal"))
        r = self.behind([], "--replica-dns", "https://localhost:%d" % e.port, "--replica-tls-name", "engines.internal",
                        wait_up=False)
        self.assertEqual(r.wait_event("replica_up")["replica"], "https://%s:%d" % (HOST, e.port))
        self.assertEqual(self.client(r).post(CHAT, {"model": "m"}).status, 200)

    def test_another_router_learns_that_a_replica_is_https(self):
        e = self.tls_engine()
        a = self.behind([e], "--gossip-listen", HOST + ":0", "--insecure-gossip", "--node-name", "a")
        b = self.behind([], "--gossip-listen", HOST + ":0", "--insecure-gossip", "--node-name", "b",
                        "--join", "%s:%d" % (HOST, a.gossip_port), wait_up=False)
        self.assertEqual(b.wait_event("replica_up")["replica"], e.url)
        self.assertEqual(self.client(b).post(CHAT, {"model": "m"}).get("x-grapevine-replica"), e.url)


if __name__ == "__main__":
    unittest.main()
