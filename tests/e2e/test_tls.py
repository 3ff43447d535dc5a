"""TLS towards clients: what is accepted and what is not, bytes through it, sessions, certificates that
change."""

import hashlib
import json
import os
import socket
import ssl
import struct
import subprocess
import threading
import time
import unittest

from lib import Engine, Router, answer, binary, chunk, pace, request, slow_ms, stopped, wait_for
from lib_http import HOST, LIMIT, SSE_HEAD, Cut
from lib_tls import Tap, TlsCase, TlsClient, TlsRouter, openssl

CHAT = "/v1/chat/completions"
V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


def body_of(n, seed=b"x"):
    """Bytes in which a misplaced part shows."""
    out = bytearray()
    i = 0
    while len(out) < n:
        out += hashlib.sha256(seed + struct.pack("<Q", i)).hexdigest().encode()
        i += 1
    return bytes(out[:n])


class Shared(TlsCase):
    @classmethod
    def set_up(cls):
        super().set_up()
        cls.e = cls.shared(Engine())
        cls.other = cls.ca.pair("other", "DNS:other.example", "DNS:*.wild.example", rsa=True)
        cls.r = cls.shared(TlsRouter([cls.e], *cls.pair.flags(), *cls.other.flags(), "--other-paths", "pass",
                                     context=cls.context))

    def setUp(self):
        super().setUp()
        self.e.clear()
        self.e.handler = lambda asked: (asked.read_body(), asked.send(answer(200, b"ok")))

    # --- what is spoken --------------------------------------------------------------------------

    def test_both_versions_and_alpn(self):
        for version, name in ((V12, "TLSv1.2"), (V13, "TLSv1.3")):
            c = self.tls_client(self.r, self.ca.context(version))
            self.assertEqual((c.sock.version(), c.sock.selected_alpn_protocol()), (name, "http/1.1"))
            self.assertIn(c.sock.cipher()[2], (128, 256))
            self.assertEqual(c.post(CHAT, {"model": "m"}).status, 200)
            self.assertEqual(c.post(CHAT, {"model": "m"}).status, 200)  # kept alive
        head = self.e.requests[0]
        self.assertEqual(head.get("x-forwarded-proto"), "https")

    def test_alpn_is_not_needed_and_h2_alone_is_refused(self):
        c = self.tls_client(self.r, self.ca.context(alpn=()))
        self.assertIsNone(c.sock.selected_alpn_protocol())
        self.assertEqual(c.post(CHAT, {"model": "m"}).status, 200)
        c = self.tls_client(self.r, self.ca.context(alpn=("h2", "http/1.1")))
        self.assertEqual(c.sock.selected_alpn_protocol(), "http/1.1")
        with self.assertRaises(ssl.SSLError) as caught:
            self.tls_client(self.r, self.ca.context(alpn=("h2",)))
        self.assertIn("NO_APPLICATION_PROTOCOL", str(caught.exception).upper().replace(" ", "_"))
        self.assertEqual(self.count(self.r, "failures_total", side="clients", reason="alpn"), 1)

    def refused(self, *args):
        """The error of a client that offers only these."""
        done = subprocess.run(["openssl", "s_client", "-connect", "%s:%d" % (HOST, self.r.port), *args],
                              input=b"", capture_output=True, timeout=LIMIT)
        text = (done.stdout + done.stderr).decode()
        self.assertNotEqual(done.returncode, 0, text)
        self.assertIn("Cipher is (NONE)", text)
        return text

    def test_old_tls_versions_are_refused(self):
        for version in ("-tls1", "-tls1_1"):
            self.assertRegex(self.refused(version, "-cipher", "ALL:@SECLEVEL=0"),
                             "alert protocol version|unsupported protocol")
        self.assertGreater(self.count(self.r, "failures_total", side="clients", reason="version"), 0)

    def test_weak_ciphers_are_refused(self):
        """All ciphers that OpenSSL still has, one by one: only those with forward secrecy and AEAD are accepted."""
        every = openssl("ciphers", "-tls1_2", "-s", "ALL:COMPLEMENTOFALL:@SECLEVEL=0").strip().split(":")
        good = {"ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305",
                "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384",
                "ECDHE-ECDSA-CHACHA20-POLY1305"}
        weak = [c for c in every if c not in good]
        self.assertGreater(len(weak), 20)
        for name in ("localhost", "other.example"):  # ECDSA, RSA
            text = self.refused("-tls1_2", "-servername", name, "-cipher", ":".join(weak) + ":@SECLEVEL=0")
            self.assertIn("handshake failure", text)
        for cipher in sorted(good):
            context = self.ca.context(V12)
            context.set_ciphers(cipher)
            name = "other.example" if "-RSA-" in cipher else "localhost"
            self.assertEqual(self.tls_client(self.r, context, name=name).sock.cipher()[0], cipher)
        self.assertGreater(self.count(self.r, "failures_total", side="clients", reason="cipher"), 0)

    def test_renegotiation_is_refused(self):
        c = subprocess.Popen(["openssl", "s_client", "-connect", "%s:%d" % (HOST, self.r.port), "-tls1_2"],
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            c.stdin.write(b"R\n")  # "R" renegotiates
            c.stdin.flush()
            out = c.communicate(timeout=LIMIT)[0].decode()
        finally:
            c.kill()
        self.assertIn("Secure Renegotiation IS supported", out)
        self.assertRegex(out, "no renegotiation")
        self.assertIn("Compression: NONE", out)

    def test_the_certificate_is_chosen_by_name(self):
        loose = self.ca.context()
        loose.check_hostname = False
        for asked, shown in (("localhost", "localhost"), ("other.example", "other.example"),
                             ("OTHER.example", "other.example"), ("a.wild.example", "other.example"),
                             ("a.b.wild.example", "localhost"), ("unknown.example", "localhost"),
                             (None, "localhost")):
            c = self.tls_client(self.r, loose, name=asked)
            self.assertEqual(c.names()[0], shown, asked)

    def test_a_client_that_rejects_the_certificate_is_counted(self):
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.tls_client(self.r, ssl.create_default_context())
        wait_for(lambda: self.count(self.r, "failures_total", side="clients", reason="alert"), "the alert")

    def test_plaintext_gets_an_explanation(self):
        c = self.client(self.r)
        r = c.ask("POST", CHAT, b"{}")
        self.assertEqual(r.status, 400)
        self.assertIn("https://", r.json["error"]["message"])
        self.assertTrue(c.is_closed())
        wait_for(lambda: "plaintext" in [e["reason"] for e in self.r.events("tls_handshake_failed")],
                 "a line on it")
        c = self.client(self.r).send(b"\x00\x01\x02")
        self.assertTrue(c.is_closed())

    # --- bytes -----------------------------------------------------------------------------------

    def test_large_bodies_byte_for_byte(self):
        for version in (V12, V13):
            for n in (1, 16383, 16384, 16385, 65536, 3_000_001):
                sent, back = body_of(n, b"up"), body_of(n, b"down")
                got = []
                self.e.handler = lambda asked: (got.append(asked.read_body()), asked.send(answer(200, back)))
                r = self.tls_client(self.r, self.ca.context(version)).ask("POST", "/any", sent)
                self.assertEqual(hashlib.sha256(r.body).digest(), hashlib.sha256(back).digest(), n)
                self.assertEqual(hashlib.sha256(got[0]).digest(), hashlib.sha256(sent).digest(), n)
                self.assertEqual(self.r.metrics()["grapevine_body_bytes_held"], 0)

    def test_a_slow_reader_gets_all_and_holds_the_engine_back(self):
        back, wrote = body_of(24 << 20), []

        def slow(asked):
            asked.read_body()
            asked.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(back))
            for i in range(0, len(back), 65536):
                asked.send(back[i:i + 65536])
                wrote.append(65536)
        self.e.handler = slow
        c = self.tls_client(self.r, receive_buffer=16384)
        c.send(request("POST", "/any", b"{}"))
        last = [-1, time.monotonic()]

        def stands():
            if len(wrote) != last[0]:
                last[:] = [len(wrote), time.monotonic()]
            return last[0] > 0 and time.monotonic() - last[1] > 0.3
        wait_for(stands, "the engine to be held back")
        self.assertLess(sum(wrote), len(back) - (4 << 20))
        self.assertLess(self.r.rss(), 400 << 20)
        self.assertEqual(hashlib.sha256(c.read().body).digest(), hashlib.sha256(back).digest())

    def test_streams_and_pipelines(self):
        def stream(asked):
            asked.read_body()
            asked.send(SSE_HEAD)
            for i in range(50):
                asked.send(chunk(b"data: {\"choices\":[{\"delta\":{\"content\":\"%d\"}}]}\n\n" % i))
            asked.send(chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        self.e.handler = stream
        c = self.tls_client(self.r)
        one = request("POST", CHAT, json.dumps({"model": "m", "stream": True}).encode())
        c.send(one * 3)
        for _ in range(3):
            r = c.read()
            self.assertEqual(r.body.count(b"data: "), 51)
            self.assertTrue(r.body.endswith(b"[DONE]\n\n"))

    def test_connections_end_with_close_notify(self):
        """close_notify before FIN: an answer that ends with the connection is complete, and a cut is visible."""
        whole = self.tls_client(self.r).ask("GET", "/x", version="1.0")
        self.assertEqual(whole.body, b"ok")  # python fails on an end without close_notify
        c = self.tls_client(self.r)
        self.assertEqual(c.ask("GET", "/x", headers=[("Connection", "close")]).status, 200)
        self.assertTrue(c.is_closed())

        def breaks(asked):
            asked.read_body()
            asked.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b"half"))
            asked.close()
        self.e.handler = breaks
        c = self.tls_client(self.r)
        with self.assertRaises((OSError, Cut)) as caught:
            c.ask("GET", "/x", version="1.0")
        self.assertNotIsInstance(caught.exception, Cut)  # no close_notify

    def test_a_client_that_leaves_ends_its_request(self):
        for leave in ("unwrap", "cut"):
            self.e.clear()
            gone = []
            self.e.handler = lambda asked: (asked.read_body(), gone.append(asked.wait_gone()))
            tap = Tap(self.r.port)
            self.addCleanup(tap.close)
            c = self.tls_client(tap.port)
            c.send(request("POST", CHAT, b'{"model":"m"}'))
            self.e.wait_request()
            if leave == "cut":
                tap.cut()
            else:
                c.sock.settimeout(0)
                try:
                    c.sock.unwrap()  # close_notify, and the socket stays open
                except (ssl.SSLError, OSError):
                    pass
            wait_for(lambda: gone, "the engine to hear of it")
            self.assertTrue(gone[0])
        self.assertGreater(self.count(self.r, "truncated_total", side="clients"), 0)

    # --- crowds ------------------------------------------------------------------------------------

    def test_many_handshakes_at_once(self):
        """Handshakes wait for turns of the event loop, and all complete."""
        errors, done = [], []

        def one():
            try:
                for _ in range(6):
                    c = TlsClient(self.r.port, self.context)
                    done.append(c.ask("POST", CHAT, b'{"model":"m"}').status)
                    c.close()
            except Exception as error:
                errors.append(error)
        threads = [threading.Thread(target=one) for _ in range(16)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual((errors, done), ([], [200] * 96))
        wait_for(lambda: self.r.metric("tls_streams") == 0, "no streams")


class Limits(TlsCase):
    def test_a_slow_handshake_ends(self):
        r = self.tls_router([self.engine()], "--tls-handshake-timeout", slow_ms(300), "--connections-max", "8")
        silent = [self.client(r) for _ in range(4)]
        hello = bytearray()  # one byte at a time: the limit is for the whole of it
        outgoing, context = ssl.MemoryBIO(), self.context
        half = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
        with self.assertRaises(ssl.SSLWantReadError):
            half.do_handshake()
        hello += outgoing.read()
        drip = self.client(r)
        began = time.monotonic()
        for c in silent:
            self.assertTrue(c.is_closed())
        try:
            for byte in hello:
                drip.send(bytes([byte]))
                pace(0.01)
                if time.monotonic() - began > LIMIT:
                    self.fail("it may go on for ever")
        except OSError:
            pass
        wait_for(lambda: self.count(r, "failures_total", side="clients", reason="timeout") == 5, "five of them")
        self.assertEqual(r.wait_event("tls_handshake_failed")["reason"], "timeout")
        self.assertEqual(r.get("/v1/models").status, 200)

    def test_a_client_that_hung_up_is_logged_with_its_address(self):
        """The socket had no address any more at the time of the report: the log and the events had an empty "from"."""
        r = self.tls_router([self.engine()])
        with stopped(r):
            for what in (b"\x00\x01\x02", b"\x16\x03\x01\x00\x05hello"):
                self.client(r).send(what).reset()
        wait_for(lambda: len(r.events("tls_handshake_failed")) == 2, "both of them")
        self.assertEqual([e["from"] for e in r.events("tls_handshake_failed")], [HOST, HOST])
        events = r.admin("GET", "/events").json["events"]
        told = [e for e in events if e["event"] == "tls_handshake_failed"]
        self.assertEqual({e["about"] for e in told}, {HOST})
        self.assertIn("A TLS handshake from %s failed at the clients port: plaintext." % HOST, [e["text"] for e in told])

    def test_handshakes_count_as_connections(self):
        r = self.tls_router([self.engine()], "--connections-max", "4", "--connections-per-client-max", "3")
        wait_for(lambda: r.metric("tls_streams") == 0, "no streams")
        kept = [self.client(r) for _ in range(3)]
        wait_for(lambda: r.metric("tls_streams") == 3, "three of them")
        surplus = self.tls_client(r)
        answered = surplus.read()
        self.assertEqual(answered.status, 429)
        self.assertTrue(surplus.is_closed())
        del kept

    def test_behind_a_balancer_with_proxy_protocol(self):
        """The header is plain and comes before the handshake, whole or in pieces."""
        e = self.engine()
        r = self.tls_router([e], "--proxy-protocol", "--forwarded-headers", "replace", wait_up=False)
        r.wait_event("replica_up")
        for plain in (b"PROXY TCP4 192.0.2.7 192.0.2.8 5555 443\r\n",
                      b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + socket.inet_aton("192.0.2.7") +
                      socket.inet_aton("192.0.2.8") + struct.pack(">HH", 5555, 443)):
            e.clear()
            c = self.tls_client(r, plain=plain)
            self.assertEqual(c.post(CHAT, {"model": "m"}).status, 200)
            self.assertEqual(e.requests[0].get("x-forwarded-for"), "192.0.2.7")
        slow = self.client(r)
        slow.send(b"PROXY TCP4 192.0.2.9 192.0")
        wait_for(lambda: slow.is_open(), "nothing")
        slow.send(b".2.8 5555 443\r\n")
        sealed = self.context.wrap_socket(slow.sock, server_hostname="localhost")
        sealed.sendall(request("POST", CHAT, b'{"model":"m"}'))
        self.assertIn(b"200 OK", sealed.recv(4096))
        sealed.close()
        with self.assertRaises(OSError):
            self.tls_client(r)  # a stranger
        r.wait_event("proxy_header_refused")


class Sessions(TlsCase):
    def keys(self, name, *keys):
        path = os.path.join(self.folder, name)
        with open(path + ".new", "w") as f:
            f.write("".join(k + "\n" for k in keys))
        os.chmod(path + ".new", 0o600)
        os.rename(path + ".new", path)
        return path

    @staticmethod
    def key():
        return openssl("rand", "-base64", "80").replace("\n", "")

    def session(self, router, context, session=None):
        """True if it was resumed, and the session for the next connection."""
        c = self.tls_client(router, context, session=session)
        self.assertEqual(c.ask("GET", "/v1/models").status, 200)
        return c.sock.session_reused, c.sock.session

    def test_two_routers_with_the_same_ticket_keys(self):
        e, one, two = self.engine(), self.key(), self.key()
        path = self.keys("tickets", one)
        a, b = [self.tls_router([e], "--tls-ticket-key-file", path) for _ in range(2)]
        alone = self.tls_router([e])
        for version in (V12, V13):
            context = self.ca.context(version)
            reused, session = self.session(a, context)
            self.assertFalse(reused)
            self.assertEqual(self.session(b, context, session)[0], True)
            self.assertEqual(self.session(alone, context, session)[0], False)
        self.assertEqual(self.count(b, "resumed_total", side="clients"), 2)
        # A new key goes behind first, then it seals, then the old one goes.
        context = self.ca.context(V12)
        old = self.session(a, context)[1]
        self.keys("tickets", two, one)
        for r in (a, b):
            wait_for(lambda: len([x for x in r.events("tls_files_read")
                                  if x["setting"] == "tls-ticket-key-file"]) == 2, "the new key")
        self.assertEqual(self.session(b, context, old)[0], True)
        new = self.session(a, context)[1]
        self.keys("tickets", two)
        wait_for(lambda: len([x for x in b.events("tls_files_read")
                              if x["setting"] == "tls-ticket-key-file"]) == 3, "the old key to go")
        self.assertEqual(self.session(b, context, new)[0], True)
        self.assertEqual(self.session(b, context, old)[0], False)

    def test_a_wrong_key_file_is_refused(self):
        for text, said in (("short", "80 bytes in base64"), ("", "want one key a line"),
                           ("\n".join([self.key()] * 17), "at most 16")):
            done = subprocess.run([binary("grapevine"), "--replica", "http://127.0.0.1:1", *self.pair.flags(),
                                   "--tls-ticket-key-file", self.keys("bad", text), "--check-config"],
                                  capture_output=True, timeout=LIMIT)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr.decode())


class Files(TlsCase):
    def refusal(self, *flags):
        done = subprocess.run([binary("grapevine"), "--replica", "http://127.0.0.1:1", *flags, "--check-config"],
                              capture_output=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 2, done)
        return done.stderr.decode()

    def test_unusable_certificates_stop_the_start(self):
        other = self.ca.pair("stranger")
        self.assertIn("is not the key of the certificate in",
                      self.refusal("--tls-cert", self.pair.cert, "--tls-key", other.key))
        self.assertIn("holds no certificate", self.refusal("--tls-cert", self.pair.key, "--tls-key", self.pair.key))
        self.assertIn("holds no private key",
                      self.refusal("--tls-cert", self.pair.cert, "--tls-key", self.pair.cert))
        self.assertIn("No such file", self.refusal("--tls-cert", "/none", "--tls-key", "/none"))
        self.assertIn("keys: 1, certificates: 2", self.refusal(*self.pair.flags(), "--tls-cert", other.cert))
        self.assertIn("holds no private key", self.refusal("--tls-cert", self.pair.cert))
        self.assertIn("both or none", self.refusal("--admin-tls-cert", self.pair.cert))
        self.assertIn("both or none", self.refusal("--replica-key", self.pair.key))
        self.assertIn("want tls-cert or admin-tls-cert too", self.refusal("--tls-ticket-key-file", self.pair.key))
        locked = os.path.join(self.folder, "locked.key")
        openssl("pkey", "-in", self.pair.key, "-aes256", "-passout", "pass:x", "-out", locked)
        self.assertIn("without a password", self.refusal("--tls-cert", self.pair.cert, "--tls-key", locked))
        weak = os.path.join(self.folder, "weak")
        openssl("req", "-x509", "-newkey", "rsa:1024", "-nodes", "-keyout", weak + ".key", "-out", weak + ".crt",
                "-subj", "/CN=weak")
        self.assertIn("key too small", self.refusal("--tls-cert", weak + ".crt", "--tls-key", weak + ".key"))

    def test_a_new_certificate_cuts_no_stream(self):
        e, more = self.engine(), threading.Event()
        e.handler = lambda asked: (asked.read_body(), asked.send(SSE_HEAD + chunk(b"data: {}\n\n")),
                                   more.wait(LIMIT), asked.send(chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"))
        used, new = self.ca.pair("used"), self.ca.pair("new", "DNS:localhost", "DNS:new.example", days=3)
        r = self.keep(TlsRouter([e], *used.flags(), "--other-paths", "pass", context=self.context))
        before = r.metrics()['grapevine_tls_certificate_expiry_seconds{setting="tls-cert",file="%s"}' % used.cert]
        self.assertLess(abs(before - 10 * 86400), 3600)
        c = self.tls_client(r)
        c.send(request("GET", "/stream"))
        self.assertEqual(c.head().status, 200)
        # First a certificate whose key is not there yet, for longer than two readings.
        used.takes(new, key=False)
        refused = r.wait_event("tls_files_refused")
        self.assertIn("is not the key of the certificate", refused["error"])
        self.assertEqual(r.metric("tls_files_refused"), 1)
        said = subprocess.run([binary("gvctl"), "--admin", "http://%s:%d" % (HOST, r.admin_port), "status"],
                              capture_output=True, text=True).stdout
        self.assertIn("TLS files    refused: the file cannot be used, and the previous one stays in force", said)
        self.assertEqual(self.tls_client(r).names(), ["localhost", HOST])
        used.takes(new)
        wait_for(lambda: len([x for x in r.events("tls_files_read") if x["changed"]]) == 2, "the new one")
        self.assertEqual(self.tls_client(r).names(), ["localhost", "new.example"])
        after = r.metrics()['grapevine_tls_certificate_expiry_seconds{setting="tls-cert",file="%s"}' % used.cert]
        self.assertLess(abs(after - 3 * 86400), 3600)
        more.set()
        self.assertEqual(c.reader.chunked()[0], b"data: {}\n\ndata: [DONE]\n\n")
        self.assertEqual(len(r.events("tls_files_refused")), 1)
        self.assertEqual(r.metric("tls_files_refused"), 0)

    def test_certificate_and_key_in_one_file(self):
        both = os.path.join(self.folder, "both.pem")
        with open(both, "w") as out:
            for path in (self.pair.cert, self.pair.key):
                with open(path) as f:
                    out.write(f.read())
        os.chmod(both, 0o600)
        r = self.keep(TlsRouter([self.engine()], "--tls-cert", both, context=self.context))
        self.assertEqual(r.get("/v1/models").status, 200)

    def test_a_readable_key_and_an_expired_certificate_log_warnings(self):
        old = self.ca.pair("old", days=-1)
        os.chmod(old.key, 0o644)
        r = self.keep(Router([self.engine()], *old.flags(), wait_up=False))
        self.assertGreater(r.wait_event("tls_certificate_expired")["expired_s"], 0)
        r.wait_event("tls_key_readable")


if __name__ == "__main__":
    unittest.main()
