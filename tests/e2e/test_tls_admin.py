"""The admin port with TLS, and gvctl at https://."""

import os
import ssl
import subprocess
import unittest

from lib import Client, Engine, Router, binary, wait_for
from lib_cluster import Clustered
from lib_http import HOST, LIMIT
from lib_tls import Authority, TlsCase, TlsClient


class Admin(TlsCase):
    @classmethod
    def set_up(cls):
        super().set_up()
        cls.e = cls.shared(Engine())
        cls.r = cls.shared(Router([cls.e], *cls.pair.flags("admin-tls")))

    def gvctl(self, *args, env=None):
        done = subprocess.run([binary("gvctl"), *args], capture_output=True, timeout=LIMIT,
                              env={**os.environ, **(env or {})})
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    @property
    def url(self):
        return "https://localhost:%d" % self.r.admin_port

    def test_probes_and_metrics(self):
        c = self.tls_client(self.r.admin_port)
        for path in ("/healthz", "/readyz", "/metrics"):
            r = c.ask("GET", path, headers=[("Host", HOST)])
            self.assertEqual(r.status, 200)
        self.assertIn(b'grapevine_tls_handshakes_total{side="admin"}', r.body)
        self.assertEqual(self.r.get("/v1/models").status, 200)  # clients need none
        plain = Client(self.r.admin_port)
        self.assertEqual(plain.ask("GET", "/healthz").status, 400)
        plain.close()

    def test_gvctl(self):
        status, out, err = self.gvctl("--admin", self.url, "--ca-file", self.ca.cert, "replicas")
        self.assertEqual(status, 0, err)
        self.assertIn(self.e.name, out)
        status, out, err = self.gvctl("--ca-file", self.ca.cert, "replicas", env={"GRAPEVINE_ADMIN": self.url + "/"})
        self.assertEqual(status, 0, err)
        status, out, err = self.gvctl("--admin", self.url, "--insecure", "replicas")
        self.assertEqual(status, 0, err)
        status, out, err = self.gvctl("--admin", self.url, "replicas",
                                      env={"SSL_CERT_FILE": self.ca.cert})  # the CAs of the system
        self.assertEqual(status, 0, err)

    def test_gvctl_trusts_no_certificate_by_default(self):
        status, _, err = self.gvctl("--admin", self.url, "replicas")
        self.assertEqual(status, 1)
        self.assertIn("unable to get local issuer certificate", err)
        self.assertIn("--ca-file", err)
        other = Authority(self.folder, "other-ca")
        self.assertEqual(self.gvctl("--admin", self.url, "--ca-file", other.cert, "replicas")[0], 1)
        status, _, err = self.gvctl("--admin", self.url, "--ca-file", "/none", "replicas")
        self.assertIn("holds no certificate", err)
        wrong = self.router([self.e], *self.ca.pair("elsewhere", "DNS:elsewhere.example").flags("admin-tls"),
                            wait_up=False)
        status, _, err = self.gvctl("--admin", "https://localhost:%d" % wrong.admin_port, "--ca-file", self.ca.cert,
                                    "replicas")
        self.assertEqual(status, 1)
        self.assertIn("hostname mismatch", err)

    def test_gvctl_explains_a_wrong_scheme(self):
        status, _, err = self.gvctl("--admin", self.url.replace("https", "http"), "replicas")
        self.assertEqual(status, 1)
        self.assertIn("use https:// in its address (--admin of gvctl)", err)
        plain = self.router([self.e])
        status, _, err = self.gvctl("--admin", "https://localhost:%d" % plain.admin_port, "--ca-file", self.ca.cert,
                                    "--timeout", "5", "replicas")
        self.assertEqual(status, 1)
        url = "localhost:%d" % plain.admin_port
        self.assertEqual(err, "gvctl: https://%s does not speak TLS\n       It answers without TLS: use --admin http://%s\n" % (url, url))
        clients = self.router([self.e], *self.pair.flags(), wait_up=False)
        status, _, err = self.gvctl("--admin", "https://localhost:%d" % clients.port, "--ca-file", self.ca.cert, "replicas")
        self.assertEqual(status, 1)
        self.assertIn("is the client port of a router", err)
        self.assertIn("--admin https://HOST:9090", err)  # it said http://
        status, out, err = self.gvctl("--admin", self.url, "version")
        self.assertEqual((status, "grapevine not reached" in out), (1, True))
        self.assertIn("--ca-file", err)

    def test_old_tls_versions_are_refused(self):
        done = subprocess.run(["openssl", "s_client", "-connect", "%s:%d" % (HOST, self.r.admin_port), "-tls1_1",
                               "-cipher", "ALL:@SECLEVEL=0"], input=b"", capture_output=True, timeout=LIMIT)
        self.assertNotEqual(done.returncode, 0)
        with self.assertRaises(ssl.SSLCertVerificationError):
            TlsClient(self.r.admin_port, ssl.create_default_context())


class Several(Clustered):
    def test_other_routers_are_called_over_tls(self):
        """Before, a token meant for https:// went to the other routers in clear text."""
        ca = Authority(self.folder.name, "ca")
        flags = ca.pair("admin", "IP:127.0.0.1").flags("admin-tls")
        e = self.engine()
        nodes = [self.node("r1", [e], *flags, ready=False)]
        nodes.append(self.node("r2", [e], *flags, join=nodes[0], ready=False))

        def status():
            done = subprocess.run([binary("gvctl"), "--admin", "https://127.0.0.1:%d" % nodes[0].admin_port,
                                   "--ca-file", ca.cert, "status"], capture_output=True, timeout=LIMIT)
            return done.stdout.decode() + done.stderr.decode()
        wait_for(lambda: "2: 2 alive" in status() or "2: all" in status(), "two routers: " + status())
        self.assertNotIn("not reached", status())
        self.assertEqual([r.events("tls_handshake_failed") for r in nodes], [[], []])


if __name__ == "__main__":
    unittest.main()
