"""gvctl finds the router of its own machine by that router's settings: address, TLS, tokens, the port for probes; and
the variables that replace its options."""

import os
import unittest

from lib import HOST, Engine, Router, closed_port, wait_for
from lib_tls import Authority, TlsCase
from test_daemon import run


class Local(TlsCase):
    @classmethod
    def set_up(cls):
        super().set_up()
        cls.e = cls.shared(Engine())
        # A name that no request uses here: only the certificate itself counts.
        cls.pair_far = cls.ca.pair("far", "DNS:router-1.internal")
        cls.tokens = {}
        for name in ("admin", "read"):
            cls.tokens[name] = cls.at(name + ".token")
            cls.write(name + ".token", name + "-secret\n", 0o600)
        cls.plain = cls.shared(Router([cls.e]))
        cls.secure = cls.shared(Router([cls.e], *cls.pair_far.flags("admin-tls"), "--probe-listen", HOST + ":0",
                                       "--admin-token-file", cls.tokens["admin"],
                                       "--admin-read-token-file", cls.tokens["read"]))
        cls.probes = next(x["port"] for x in cls.secure.events("listening") if x["port_of"] == "probes")

    @classmethod
    def at(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def write(cls, name, text, mode=0o644):
        with open(cls.at(name), "w") as f:
            f.write(text)
        os.chmod(cls.at(name), mode)
        return cls.at(name)

    def settings(self, *more, port=None, host=HOST, cert=None, tokens=("admin", "read")):
        """Settings with which the router with TLS could have been started."""
        lines = ["admin-listen: '%s:%d'" % (host, port or self.secure.admin_port),
                 "admin-tls-cert: %s" % (cert or self.pair_far.cert), "admin-tls-key: %s" % self.pair_far.key]
        options = {"admin": "admin-token-file", "read": "admin-read-token-file"}
        lines += ["%s: %s" % (options[name], self.tokens[name]) for name in tokens]
        return self.write("grapevine.yaml", "\n".join([*lines, *more]) + "\n")

    def drain(self, *args, **how):
        return run("gvctl", *args, "undrain", self.e.name, **how)

    def test_a_settings_file_is_all_that_gvctl_needs(self):
        for host in (HOST, "0.0.0.0"):
            file = self.settings(host=host)
            for command in (("alive",), ("ready",), ("metrics",), ("replicas",), ("status",), ("config",), ("version",)):
                status, out, err = run("gvctl", "--config", file, *command)
                self.assertEqual((status, err), (0, ""), command)
            self.assertIn("grapevine 0", out)
            self.assertEqual(self.drain("--config", file)[0], 0)
        env = {"GRAPEVINE_CONFIG": file}
        self.assertEqual(run("gvctl", "replicas", env=env)[0], 0)
        self.assertEqual(self.drain(env=env)[0], 0)

    def test_the_read_token_is_enough_for_reading(self):
        file = self.settings(tokens=("read",))
        self.assertEqual(run("gvctl", "--config", file, "replicas")[0], 0)
        status, _, err = self.drain("--config", file)
        self.assertEqual(status, 1)
        self.assertIn("--token-file", err)
        self.assertEqual(self.drain("--config", file, "--token-file", self.tokens["admin"])[0], 0)

    def test_variables_are_settings_too(self):
        """As a container has them; its health check is `gvctl alive`."""
        env = {"GRAPEVINE_ADMIN_LISTEN": "0.0.0.0:%d" % self.secure.admin_port,
               "GRAPEVINE_ADMIN_TLS_CERT": self.pair_far.cert, "GRAPEVINE_ADMIN_TLS_KEY": self.pair_far.key,
               "GRAPEVINE_ADMIN_TOKEN_FILE": self.tokens["admin"]}
        for command in ("alive", "ready", "replicas"):
            self.assertEqual(run("gvctl", command, env=env)[::2], (0, ""), command)
        self.assertEqual(self.drain(env=env)[0], 0)
        one = {"GRAPEVINE_ADMIN_LISTEN": "%s:%d" % (HOST, closed_port()),
               "GRAPEVINE_PROBE_LISTEN": "0.0.0.0:%d" % self.probes}
        for command, status in (("alive", 0), ("ready", 0), ("metrics", 0), ("replicas", 1)):
            self.assertEqual(run("gvctl", command, env=one)[0], status, command)
        # An address given to gvctl takes precedence over them.
        url = "http://%s:%d" % (HOST, self.plain.admin_port)
        for args, more in ((("--admin", url), {}), ((), {"GRAPEVINE_ADMIN": url})):
            self.assertEqual(run("gvctl", *args, "replicas", env={**env, **more})[0], 0)

    def test_another_certificate_is_not_trusted(self):
        """A foreign process on the port does not get the token. `alive` sends no token, and needs none."""
        other = self.ca.pair("other", "DNS:localhost")
        file = self.settings(cert=other.cert)
        status, out, err = run("gvctl", "--config", file, "replicas")
        self.assertEqual((status, out), (1, ""))
        self.assertIn("the TLS handshake with", err)
        self.assertEqual(run("gvctl", "--config", file, "alive")[0], 0)  # it may be changing just now
        # A certificate is trusted by its CA and name as usual.
        elsewhere = self.router([self.e], *self.pair.flags("admin-tls"), wait_up=False)
        file = self.settings(cert=other.cert, port=elsewhere.admin_port, host="localhost", tokens=())
        self.assertEqual(run("gvctl", "--config", file, "--ca-file", self.ca.cert, "replicas")[0], 0)
        self.assertEqual(run("gvctl", "--config", file, "--ca-file", Authority(self.folder, "stranger").cert,
                             "replicas")[0], 1)

    def test_a_settings_file_that_became_invalid(self):
        """The router goes on with the old contents, and its health check goes on too; a file named on the command line
        must be valid."""
        file = self.settings("polcy: x")
        status, _, err = run("gvctl", "alive", env={"GRAPEVINE_CONFIG": file})
        self.assertEqual(status, 0)
        self.assertIn("polcy", err)
        status, out, err = run("gvctl", "--config", file, "alive")
        self.assertEqual((status, out), (2, ""))
        self.assertIn("polcy", err)
        status, _, err = run("gvctl", "--config", "/nowhere.yaml", "alive")
        self.assertEqual(status, 2)
        self.assertIn("/nowhere.yaml", err)
        status, _, err = run("gvctl", "--config", file, "--admin", "http://a:1", "alive")
        self.assertEqual(status, 2)
        self.assertIn("--admin and --config both name a router", err)

    def test_variables_replace_options(self):
        near = self.router([self.e], *self.pair.flags("admin-tls"), "--admin-token-file", self.tokens["admin"],
                           "--admin-read-token-file", self.tokens["read"], wait_up=False)
        env = {"GRAPEVINE_ADMIN": "https://localhost:%d" % near.admin_port}
        self.assertEqual(run("gvctl", "replicas", env=env)[0], 1)
        env["GRAPEVINE_ADMIN_CA_FILE"] = self.ca.cert
        status, _, err = run("gvctl", "replicas", env=env)
        self.assertEqual(status, 1)
        self.assertIn("(401)", err)
        env["GRAPEVINE_ADMIN_TOKEN_FILE"] = self.tokens["admin"]
        for command in ("replicas", "status", "alive"):
            self.assertEqual(run("gvctl", command, env=env)[::2], (0, ""), command)
        wait_for(lambda: self.drain(env=env)[0] == 0, "a change")
        # An option goes before its variable.
        self.assertEqual(self.drain("--token-file", self.tokens["read"], env=env)[0], 1)
        # A command without a request reads no token, and neither does a probe.
        env["GRAPEVINE_ADMIN_TOKEN_FILE"] = "/nowhere.token"
        for command, status in (("alive", 0), ("help", 0), ("replicas", 2)):
            self.assertEqual(run("gvctl", command, env=env)[0], status, command)

    def test_the_variables_are_documented(self):
        said = run("gvctl", "--help")[1]
        with open("deploy/man/gvctl.1.in") as f:
            page = f.read()
        for name in ("GRAPEVINE_ADMIN", "GRAPEVINE_ADMIN_TOKEN_FILE", "GRAPEVINE_ADMIN_CA_FILE", "GRAPEVINE_CONFIG"):
            self.assertIn(name, said)
            self.assertIn("\n.B %s\n" % name, page)
        # A router does not take these variables for unknown settings.
        env = {"GRAPEVINE_ADMIN_CA_FILE": self.ca.cert, "GRAPEVINE_PROD_SERVICE_PORT_HTTP": "80"}
        self.assertEqual(run("grapevine", "--check-config", "--replica", "http://10.0.0.1:1", env=env)[0], 0)


if __name__ == "__main__":
    unittest.main()
