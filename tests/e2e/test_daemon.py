"""The process: settings, logs, the admin port, gvctl, signals."""

import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from lib import (HOST, LIMIT, SSE_HEAD, Case, Client, Cut, Engine, Router, answer, answer_json, binary,
                 chunk, closed_port, request, wait_for)

CHAT = "/v1/chat/completions"
BODY = b'{"model":"m","messages":[{"role":"user","content":"hello there"}]}'


def run(name, *args, env=None, stdin=b""):
    full = {k: v for k, v in os.environ.items() if not k.startswith("GRAPEVINE_")}
    full.update(env or {})
    p = subprocess.run([binary(name)] + list(args), input=stdin, capture_output=True, env=full,
                       timeout=LIMIT)
    return p.returncode, p.stdout.decode(), p.stderr.decode()


def own_address():
    """An address of this machine that is none of loopback, or None. No packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("198.51.100.1", 9))
        except OSError:
            return None
        address = s.getsockname()[0]
    return None if address.startswith("127.") or address == "0.0.0.0" else address


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::", 0))
    except OSError:
        return False
    return True


class Settings(Case):
    ONE = ("--replica", "http://10.0.0.1:8000")

    def test_help_tells_every_setting(self):
        status, out, err = run("grapevine", "--help")
        self.assertEqual((status, err), (0, ""))
        for name in ("--listen", "--admin-listen", "--replica", "--policy", "--other-paths",
                     "--config", "--check-config", "--drain-timeout"):
            self.assertIn(name, out)
        self.assertEqual(run("grapevine", "-h")[1], out)

    def test_version(self):
        status, out, err = run("grapevine", "--version")
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"^grapevine \d+\.\d+")

    def test_check_config_tells_what_is_in_effect_and_whence(self):
        status, out, err = run("grapevine", "--check-config", *self.ONE, "--policy", "random",
                               env={"GRAPEVINE_TTL": "90s"})
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"policy: random +# flag")
        self.assertRegex(out, r"ttl: 90s +# GRAPEVINE_TTL")
        self.assertRegex(out, r"listen: 0.0.0.0:8080 +# default")

    def test_an_empty_file_sets_nothing(self):
        """An empty ConfigMap is one; libyaml aborted the start over it."""
        status, out, err = run("grapevine", "--check-config", "--config", "/dev/null", *self.ONE)
        self.assertEqual((status, err), (0, ""))

    def test_the_variable_of_gvctl_is_no_setting(self):
        status, _, err = run("grapevine", "--check-config", *self.ONE,
                             env={"GRAPEVINE_ADMIN": "http://127.0.0.1:9090"})
        self.assertEqual((status, err), (0, ""))

    def test_what_check_config_prints_is_a_config(self):
        _, out, _ = run("grapevine", "--check-config", *self.ONE, "--policy", "random")
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            f.write(out)
            f.flush()
            status, again, err = run("grapevine", "--check-config", "--config", f.name)
        self.assertEqual((status, err), (0, ""))
        strip = lambda text: [line.partition("#")[0].strip() for line in text.splitlines()]
        self.assertEqual([l for l in strip(out) if l],
                         [l for l in strip(again) if l and not l.startswith("config:")])

    def bad(self, *args, env=None, words=()):
        status, out, err = run("grapevine", *args, env=env)
        self.assertEqual((status, out), (2, ""), err)
        self.assertEqual(len(err.splitlines()), 1, err)
        self.assertTrue(err.startswith("grapevine: "), err)
        for word in words:
            self.assertIn(word, err)

    def test_a_bad_setting_is_one_line_with_its_name_its_value_and_what_is_right(self):
        self.bad(*self.ONE, "--policy", "fastest", words=("policy", "fastest", "cache_aware"))
        self.bad(*self.ONE, "--listen", "nonsense", words=("listen", "nonsense", "HOST:PORT"))
        self.bad(*self.ONE, "--listen", "127.0.0.1:99999", words=("listen", "99999"))
        self.bad(*self.ONE, "--ttl", "5", words=("ttl", '"5"'))
        self.bad(*self.ONE, "--ttl", "-5s", words=("ttl",))
        self.bad(*self.ONE, "--body-bytes-max", "lots", words=("body-bytes-max", "lots"))
        self.bad(*self.ONE, "--other-paths", "maybe", words=("other-paths", "pass", "refuse"))
        self.bad(*self.ONE, "--retries-max", "99", words=("retries-max", "99", "16"))
        self.bad("--replica", "10.0.0.1:8000", words=("replica", "http://"))
        self.bad("--replica", "https://a:1", words=("replica", "TLS"))
        self.bad("--replica", "http://a:1/path", words=("replica", "path"))
        self.bad(*self.ONE, "--nonsense", words=("nonsense", "--help"))
        self.bad(*self.ONE, "--policy", words=("policy",))
        self.bad(*self.ONE, "extra", words=("extra",))
        self.bad(words=("replica", "missing"))
        self.bad(*self.ONE, env={"GRAPEVINE_POLICY": "x"}, words=("policy", "GRAPEVINE_POLICY"))
        self.bad(*self.ONE, "--config", "/does/not/exist", words=("/does/not/exist",))
        self.bad(*self.ONE, *self.ONE, words=("replica",))

    def test_a_bad_token_file_stops_the_start(self):
        self.bad(*self.ONE, "--admin-token-file", "/does/not/exist", "--listen", HOST + ":0",
                 "--admin-listen", HOST + ":0", words=("admin-token-file", "/does/not/exist"))

    def test_an_index_too_small_is_told_as_a_bad_setting(self):
        status, _, err = run("grapevine", *self.ONE, "--index-bytes", "1MiB", "--listen",
                             HOST + ":0", "--admin-listen", HOST + ":0")
        self.assertEqual(status, 2, err)
        self.assertEqual(len(err.splitlines()), 1)
        self.assertIn("index-bytes", err)
        wanted = re.search(r"at least (\d+MiB)", err).group(1)
        r = self.router([self.engine()], "--index-bytes", wanted)
        self.assertEqual(self.client(r).ask("POST", CHAT, BODY).status, 200)

    def test_a_cluster_needs_more_memory_and_says_how_much(self):
        cluster = ["--gossip-listen", HOST + ":0", "--insecure-gossip"]
        status, _, err = run("grapevine", *self.ONE, *cluster, "--index-bytes", "1MiB", "--listen",
                             HOST + ":0", "--admin-listen", HOST + ":0")
        self.assertEqual(status, 2, err)
        wanted = re.search(r"at least (\d+MiB)", err).group(1)
        r = self.router([self.engine()], *cluster, "--index-bytes", wanted)
        self.assertEqual(self.client(r).ask("POST", CHAT, BODY).status, 200)

    def test_a_port_in_use_stops_the_start_and_is_named(self):
        s = socket.socket()
        s.bind((HOST, 0))
        s.listen()
        for setting in ("listen", "admin-listen"):
            other = "admin-listen" if setting == "listen" else "listen"
            status, out, err = run("grapevine", *self.ONE, "--" + setting,
                                   "%s:%d" % s.getsockname(), "--" + other, HOST + ":0")
            self.assertEqual(status, 1)
            events = [json.loads(line) for line in err.splitlines()]
            self.assertIn(("listen_failed", setting),
                          [(e["event"], e.get("setting")) for e in events])
        s.close()

    def test_a_yaml_file_an_environment_and_flags_in_their_order(self):
        e = self.engine()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "grapevine.yaml")
            with open(path, "w") as f:
                f.write("# a comment\nreplica: [%s]\nlisten: 127.0.0.1:0\n"
                        "admin-listen: 127.0.0.1:0\npolicy: random\nttl: 100s\n"
                        "near-tie: 0.5\nindex-bytes: 32MiB\n" % e.url)
            r = self.router([], "--config", path, "--near-tie", "0.25", defaults=False,
                            env={"GRAPEVINE_TTL": "200s", "GRAPEVINE_NEAR_TIE": "0.75"})
            text = r.admin("GET", "/config").body.decode()
            self.assertRegex(text, r"policy: random")
            self.assertRegex(text, r"ttl: 200s")
            self.assertRegex(text, r"near-tie: 0.25")
            wait_for(lambda: r.events("replica_up"), "the replica")
            self.assertEqual(self.client(r).ask("POST", CHAT, BODY).status, 200)

    def test_a_bad_file_is_told_with_its_line(self):
        for text, words in (("replica: [http://a:1]\npolicy: x\n", ("policy", ":2")),
                            ("replica: http://a:1\nnonsense: 1\n", ("nonsense",)),
                            ("replica: [\n", ()),
                            ("ttl: 1s\nttl: 2s\nreplica: http://a:1\n", ("ttl",)),
                            ("a: {b: c}\n", ())):
            with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
                f.write(text)
                f.flush()
                self.bad("--config", f.name, words=words)


class AdminOffLoopback(Case):
    """An admin port that other machines reach. One of this machine's own addresses stands for
    them: a connection to it comes from it."""

    CHANGES = (("POST", "/replicas?replica=10.0.0.9:80"), ("DELETE", "/replicas?replica=%s"),
               ("POST", "/drain?replica=%s"), ("POST", "/undrain?replica=%s"),
               ("POST", "/log-level?level=debug"))

    def setUp(self):
        super().setUp()
        self.outside = own_address()
        if self.outside is None:
            self.skipTest("this machine has no address but loopback")

    def call(self, host, r, method, path, headers=()):
        c = Client(r.admin_port, host=host)
        try:
            return c.ask(method, path, b"" if method != "GET" else None,
                         [("Host", host)] + list(headers))
        finally:
            c.close()

    def test_changes_without_a_token_come_from_this_machine_alone(self):
        e = self.engine()
        for listen in ("0.0.0.0:0", "[::]:0")[:1 + has_ipv6()]:
            r = self.router([e], "--admin-listen", listen)
            warned = r.wait_event("admin_without_token")
            self.assertEqual(warned["level"], "warn")
            self.assertIn("admin-token-file", warned["want"])
            before = r.admin("GET", "/replicas").json
            for method, path in self.CHANGES:
                got = self.call(self.outside, r, method, path.replace("%s", e.name))
                self.assertEqual(got.status, 403, path)
                for word in ("admin-token-file", self.outside):
                    self.assertIn(word, got.json["error"]["message"])
            after = r.admin("GET", "/replicas").json
            self.assertEqual([(x["name"], x["health"], x["wish"]) for x in before],
                             [(x["name"], x["health"], x["wish"]) for x in after])
            self.assertEqual({x["path"] for x in r.events("admin_refused")},
                             {path.partition("?")[0] for _, path in self.CHANGES})
            self.assertEqual(r.events("admin_refused")[0]["from"], self.outside)
            self.assertIn("comes from %s." % self.outside, got.json["error"]["message"])
            self.assertIn("by 127.0.0.1", got.json["error"]["message"])
            self.assertIn("from loopback alone", warned["effect"])
            for path in ("/healthz", "/readyz", "/metrics", "/replicas", "/config"):
                self.assertEqual(self.call(self.outside, r, "GET", path).status, 200, path)
            code, _, err = run("gvctl", "--admin", "http://%s:%d" % (self.outside, r.admin_port),
                               "drain", e.name)
            self.assertEqual((code, "admin-token-file" in err, "(403)" in err), (1, True, True))
            # On the second router 127.0.0.1 comes as ::ffff:127.0.0.1.
            self.assertEqual(r.admin("POST", "/drain?replica=" + e.name, b"").status, 200)

    def test_a_port_off_loopback_takes_no_changes_without_a_token(self):
        e = self.engine()
        r = self.router([e], "--admin-listen", self.outside + ":0")
        warned = r.wait_event("admin_without_token")
        self.assertIn("no changes at all", warned["effect"])
        self.assertIn("admin-token-file", warned["want"])
        got = self.call(self.outside, r, "POST", "/drain?replica=" + e.name)
        self.assertEqual(got.status, 403)
        message = got.json["error"]["message"]
        self.assertIn("takes no changes at all: start it with admin-token-file", message)
        self.assertNotIn("127.0.0.1", message)
        self.assertEqual(self.call(self.outside, r, "GET", "/replicas").status, 200)

    def test_the_token_is_asked_of_everybody(self):
        e = self.engine()
        with tempfile.NamedTemporaryFile("w") as f:
            f.write("secret\n")
            f.flush()
            r = self.router([e], "--admin-listen", "0.0.0.0:0", "--admin-token-file", f.name)
            key = [("Authorization", "Bearer secret")]
            for host in (self.outside, HOST):
                path = "/drain?replica=" + e.name
                self.assertEqual(self.call(host, r, "POST", path).status, 401)
                self.assertEqual(self.call(host, r, "POST", path, key).status, 200)
        self.assertEqual(r.events("admin_without_token"), [])

    def test_a_port_on_loopback_needs_no_warning(self):
        r = self.router([self.engine()])
        self.assertEqual(r.admin("POST", "/log-level?level=info", b"").status, 200)
        self.assertEqual(r.events("admin_without_token"), [])


class Admin(Case):
    @classmethod
    def set_up(cls):
        cls.e = cls.shared(Engine())
        cls.r = cls.shared(Router([cls.e], "--other-paths", "pass"))

    def gvctl(self, *args, stdin=b"", **how):
        return run("gvctl", "--admin", "http://%s:%d" % (HOST, self.r.admin_port), *args,
                   stdin=stdin, **how)

    def test_health_and_readiness(self):
        self.assertEqual(self.r.admin("GET", "/healthz").status, 200)
        self.assertEqual(self.r.admin("GET", "/readyz").status, 200)
        self.assertEqual(self.r.admin("HEAD", "/readyz").status, 200)

    def test_the_index_lists_every_call(self):
        text = self.r.admin("GET", "/").body.decode()
        for path in ("/healthz", "/readyz", "/metrics", "/replicas", "/explain", "/config",
                     "/log-level", "/drain", "/undrain", "/members", "/convergence",
                     "POST /replicas", "DELETE /replicas", "/explain?all=1"):
            self.assertIn(path, text)

    def test_unknown_calls_and_wrong_methods(self):
        self.assertEqual(self.r.admin("GET", "/nothing").status, 404)
        got = self.r.admin("POST", "/metrics", b"")
        self.assertEqual((got.status, got.get("allow")), (405, "GET, HEAD"))
        self.assertEqual(got.json["error"]["message"], "/metrics takes GET, HEAD.")
        got = self.r.admin("GET", "/drain")
        self.assertEqual((got.status, got.json["error"]["message"]), (405, "/drain takes POST."))

    def test_admin_calls_are_not_on_the_client_port(self):
        for path in ("/healthz", "/replicas", "/config"):
            self.e.clear()
            self.r.get(path)
            self.assertEqual([a.path for a in self.e.requests], [path])

    def test_counters_move(self):
        before = self.r.metrics()
        c = self.client(self.r)
        c.ask("POST", CHAT, BODY)
        c.ask("GET", "/sleep")
        c.send(b"nonsense\r\n\r\n")
        c.read()
        after = self.r.metrics()

        def moved(name):
            return after["grapevine_" + name] - before["grapevine_" + name]
        self.assertEqual(moved("requests_total"), 3)  # the scrape is no client's
        self.assertEqual(moved("connections_accepted_total"), 2)
        self.assertEqual(moved('requests_refused_total{reason="malformed"}'), 1)
        self.assertEqual(moved('requests_refused_total{reason="path"}'), 1)
        self.assertEqual(moved('responses_total{class="4xx"}'), 2)
        self.assertEqual(moved("request_body_bytes_total"), len(BODY))
        self.assertEqual(moved('replica_chosen_total{replica="%s"}' % self.e.name), 1)
        self.assertEqual(after["grapevine_requests_open"], 1)

    def test_replicas_and_explain_are_json(self):
        replicas = self.r.admin("GET", "/replicas").json
        self.assertEqual([(x["name"], x["health"]) for x in replicas], [(self.e.name, "up")])
        got = self.r.admin("POST", "/explain", BODY)
        self.assertEqual(got.status, 200)
        self.assertIn(self.e.name, json.dumps(got.json))
        self.assertEqual(self.r.admin("POST", "/explain", b"nonsense").status, 400)
        self.assertEqual(self.r.admin("POST", "/explain", b"").status, 400)

    def test_explain_says_who_was_left_out(self):
        second = self.engine()
        r = self.router([self.e, second])
        name = {"replica": second.name, "why": "draining"}
        self.assertEqual(r.admin("POST", "/explain", BODY).json["left_out"], [])
        self.assertEqual(r.admin("POST", "/drain?replica=" + second.name, b"").status, 200)
        self.assertEqual(r.admin("POST", "/explain", BODY).json["left_out"], [name])

    def test_web_pages_cannot_call(self):
        """A page that points its own name at this port (DNS rebinding) sends that name as Host; a
        page that sends a form here says where it comes from."""
        for host in ("evil.test", "evil.test:9090", "127.0.0.1.evil.test", "localhost.evil.test",
                     "[evil]"):
            got = self.r.admin("GET", "/replicas", headers=[("Host", host)])
            self.assertIn(got.status, (400, 403), host)
            self.assertEqual(self.r.admin("GET", "/metrics", headers=[("Host", host)]).status,
                             400 if host == "[evil]" else 200)  # scraped by any name
            self.assertEqual(self.r.admin("GET", "/healthz", headers=[("Host", host)]).status,
                             400 if host == "[evil]" else 200)  # probes ask under any name
        for host in ("127.0.0.1", "127.0.0.1:9090", "10.1.2.3:80", "localhost", "LOCALHOST:1",
                     "[::1]", "[::1]:9090"):
            got = self.r.admin("GET", "/replicas", headers=[("Host", host)])
            self.assertEqual(got.status, 200, host)
        got = self.r.admin("GET", "/config", headers=[("Host", "evil.test")])
        self.assertEqual(got.status, 403)
        self.assertIn("evil.test", got.json["error"]["message"])
        got = self.r.admin("POST", "/log-level?level=info", b"", [("Origin", "http://evil.test")])
        self.assertEqual(got.status, 403)
        self.assertIn("Origin", got.json["error"]["message"])

    def test_the_token_opens_the_admin_port_under_any_name(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "token")
            with open(path, "w") as f:
                f.write("secret\n")
            r = self.router([self.e], "--admin-token-file", path)
            key = ("Authorization", "Bearer secret")
            name = ("Host", "router.example")
            self.assertEqual(r.admin("GET", "/config", headers=[name]).status, 403)
            self.assertEqual(r.admin("GET", "/config", headers=[name, key]).status, 200)
            origin = ("Origin", "http://console.example")
            self.assertEqual(r.admin("POST", "/log-level?level=info", b"",
                                     [name, origin, key]).status, 200)

    def test_explain_knows_the_session(self):
        """By the configured header, as a request would have it; gvctl has a flag for it."""
        engines = [self.engine() for _ in range(4)]
        r = self.router(engines, "--policy", "session", "--session-header", "x-chat")
        admin = "http://%s:%d" % (HOST, r.admin_port)
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
        for i in range(8):
            key = "key-%d" % i
            got = self.client(r).ask("POST", "/v1/chat/completions", body, [("X-Chat", key)])
            went = got.get("x-grapevine-replica")
            for text in (r.admin("POST", "/explain", body, [("X-Chat", key)]).body,
                         run("gvctl", "--admin", admin, "--session", key, "--json", "explain",
                             stdin=body)[1]):
                self.assertEqual(json.loads(text)["choice"], went, key)

    def test_gvctl_has_every_command(self):
        for args, stdin, words in (
                (("replicas",), b"", (self.e.name, "up")),
                (("--json", "replicas"), b"", ('"health"',)),
                (("explain",), BODY, (self.e.name,)),
                (("--json", "explain", "-"), BODY, (self.e.name,)),
                (("ready",), b"", ("ready",)),
                (("metrics",), b"", ("# HELP grapevine_",)),
                (("config",), b"", ("policy: cache_aware",)),
                (("log-level", "warn"), b"", ("ok",)),
                (("log-level", "info"), b"", ("ok",)),
                (("drain", self.e.name), b"", ("ok",)),
                (("undrain", self.e.name), b"", ("ok",))):
            status, out, err = self.gvctl(*args, stdin=stdin)
            self.assertEqual((status, err), (0, ""), args)
            for word in words:
                self.assertIn(word, out)
        with tempfile.NamedTemporaryFile() as f:
            f.write(BODY)
            f.flush()
            self.assertEqual(self.gvctl("explain", f.name)[0], 0)
        url = "http://%s:%d" % (HOST, self.r.admin_port)
        self.assertEqual(run("gvctl", "ready", env={"GRAPEVINE_ADMIN": url})[0], 0)

    def test_gvctl_tells_what_is_wrong(self):
        for args, stdin, status in ((("drain", "no:1"), b"", 1), (("log-level", "loud"), b"", 1),
                                    (("explain",), b"nonsense", 1),
                                    (("explain", "/does/not/exist"), b"", 1),
                                    (("dance",), b"", 2), (("drain",), b"", 2), ((), b"", 2),
                                    (("ready", "x"), b"", 2), (("--nonsense",), b"", 2)):
            got, out, err = self.gvctl(*args, stdin=stdin)
            self.assertEqual(got, status, args)
            self.assertTrue(err, args)
        got, out, err = run("gvctl", "--admin", "http://%s:%d" % (HOST, closed_port()), "replicas")
        self.assertEqual((got, out), (1, ""))
        self.assertIn("Is grapevine running?", err)
        for url in ("nonsense", "http://", "ftp://a:1", "http://%s:99999" % HOST):
            got, out, err = run("gvctl", "--admin", url, "replicas")
            self.assertNotEqual(got, 0, url)
            self.assertTrue(err, url)
        self.assertEqual(run("gvctl", "--help")[0], 0)
        self.assertRegex(run("gvctl", "--version")[1], r"^gvctl \d")

    def test_a_drained_replica_gets_nothing_new_until_it_is_undrained(self):
        other = self.engine()
        e = self.engine()
        r = self.router([e, other], "--policy", "round_robin")
        self.assertEqual(r.admin("POST", "/drain?replica=" + e.name).status, 200)
        c = self.client(r)
        for _ in range(4):
            self.assertEqual(c.ask("POST", CHAT, BODY).status, 200)
        self.assertEqual(len(e.requests), 0)
        self.assertEqual(r.admin("POST", "/undrain?replica=" + e.name).status, 200)
        for _ in range(4):
            c.ask("POST", CHAT, BODY)
        self.assertGreater(len(e.requests), 0)

    def test_a_call_that_changes_something_needs_the_token(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "token")
            with open(path, "w") as f:
                f.write("s3cret\n")
            r = self.router([self.e], "--admin-token-file", path)
            for headers in ((), [("Authorization", "Bearer wrong")], [("Authorization", "s3cret")],
                            [("Authorization", "Bearer s3cret2")], [("Authorization", "Bearer ")]):
                for call in ("/drain?replica=" + self.e.name, "/log-level?level=debug"):
                    got = r.admin("POST", call, b"", headers)
                    self.assertEqual(got.status, 401, headers)
            got = r.admin("POST", "/log-level?level=info", b"",
                          [("Authorization", "Bearer s3cret")])
            self.assertEqual(got.status, 200)
            for call in ("/healthz", "/readyz", "/metrics"):
                self.assertEqual(r.admin("GET", call).status, 200)
            url = "http://%s:%d" % (HOST, r.admin_port)
            self.assertEqual(run("gvctl", "--admin", url, "log-level", "info")[0], 1)
            self.assertEqual(
                run("gvctl", "--admin", url, "--token-file", path, "log-level", "info")[0], 0)

    def test_the_admin_port_is_as_strict_as_the_other(self):
        c = Client(self.r.admin_port)
        c.send(b"POST /explain HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
               b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        self.assertEqual(c.read().status, 400)
        self.assertTrue(c.is_closed())
        c.close()


class FirstMoments(Case):
    """From the start until a replica has listed its models."""

    def ready(self, r):
        return r.admin("GET", "/readyz").status == 200

    def start(self, probe, *args):
        e = self.engine()
        e.probes["/v1/models"] = probe
        r = self.router([e], *args, wait_up=False)
        r.wait_event("replica_up")
        return e, r

    def test_it_is_ready_when_a_replica_has_listed_its_models(self):
        go = threading.Event()
        self.addCleanup(go.set)

        def late(asked):
            go.wait(LIMIT)
            asked.send(answer_json({"object": "list", "data": [{"id": "m"}]}))
        _, r = self.start(late, "--health-timeout", "%ds" % LIMIT)
        for got in (r.admin("GET", "/readyz"), r.get("/health")):
            self.assertEqual(got.status, 503)
            self.assertIn(b"models", got.body)
        for path in ("/v1/models", "/v1/models/m"):
            got = r.get(path)
            self.assertEqual((got.status, got.json["error"]["type"]),
                             (503, "ServiceUnavailableError"))
            self.assertIn("gvctl replicas", got.json["error"]["message"])
        go.set()
        wait_for(lambda: self.ready(r), "ready")
        self.assertEqual([m["id"] for m in r.get("/v1/models").json["data"]], ["m"])

    def test_an_engine_without_a_list_is_no_obstacle(self):
        for probe in (lambda asked: asked.send(answer(404, b"")),
                      lambda asked: asked.send(answer(500, b"")),
                      lambda asked: asked.send(b"nonsense\r\n\r\n"),
                      lambda asked: asked.wait_gone()):
            _, r = self.start(probe, "--health-timeout", "300ms")
            wait_for(lambda: self.ready(r), "ready")
            self.assertEqual(r.get("/v1/models").status, 503)
            self.assertEqual(self.client(r).post(CHAT, {"model": "m"}).status, 200)

    def test_a_list_may_be_empty(self):
        _, r = self.start(lambda asked: asked.send(answer_json({"object": "list", "data": []})))
        wait_for(lambda: self.ready(r), "ready")
        got = r.get("/v1/models")
        self.assertEqual((got.status, got.json["data"]), (200, []))
        self.assertEqual(r.get("/v1/models/m").status, 404)

    def test_no_replica_no_list(self):
        r = self.router(["http://%s:%d" % (HOST, closed_port())], wait_up=False)
        r.wait_event("replica_down")
        self.assertEqual(r.get("/v1/models").status, 503)


class Logs(Case):
    def test_each_event_is_one_json_line(self):
        e = self.engine()
        r = self.router([e], "--log-level", "debug", "--access-log", "all", "--other-paths", "pass")
        c = self.client(r)
        c.ask("GET", "/a%22%0a%5c", None, [("X-Request-Id", 'quote"back\\slash')])
        c.ask("POST", CHAT, BODY)
        c.send(b"GET \x00\xff HTTP/1.1\r\n\r\n")
        c.read()
        mine = lambda: [x for x in r.events("request") if x["path"] != "/v1/models"]
        wait_for(lambda: len(mine()) >= 3, "the access log")
        for line in r.lines:
            event = json.loads(line)
            self.assertRegex(event["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
            self.assertIn(event["level"], ("error", "warn", "info", "debug"))
            self.assertTrue(event["event"])
        first = mine()[0]
        self.assertEqual((first["id"], first["path"], first["status"], first["replica"]),
                         ('quote"back\\slash', "/a%22%0a%5c", 200, e.name))

    def test_the_access_log_can_be_errors_only_or_off(self):
        e = self.engine()
        for setting, wanted in (("errors", [403]), ("off", []), ("all", [200, 403])):
            r = self.router([e], "--access-log", setting)
            c = self.client(r)
            c.ask("POST", CHAT, BODY)
            c.ask("GET", "/sleep")
            r.stop()
            self.assertEqual([x["status"] for x in r.events("request")
                              if x["path"] != "/v1/models"], wanted)

    def test_probes_of_a_router_that_is_not_ready_have_no_line(self):
        """Each was one, as long as the engines load."""
        for setting, wanted in (("errors", [("/sleep", 403), ("/health", 405)]),
                                ("all", [("/health", 503), ("/ping", 503), ("/sleep", 403),
                                         ("/health", 405)])):
            r = self.router(["http://%s:%d" % (HOST, closed_port())], "--access-log", setting,
                            wait_up=False)
            c = self.client(r)
            for path in ("/health", "/ping"):
                self.assertEqual(c.ask("GET", path).status, 503)
            self.assertEqual(r.admin("GET", "/readyz").status, 503)
            c.ask("GET", "/sleep")
            self.client(r).ask("POST", "/health", b"{}")
            r.stop()
            self.assertEqual([(x["path"], x["status"]) for x in r.events("request")], wanted)

    def test_the_level_changes_at_run_time(self):
        e = self.engine()
        r = self.router([e], "--access-log", "all")
        c = self.client(r)
        self.assertEqual(r.admin("POST", "/log-level?level=error").status, 200)
        chats = lambda: [x for x in r.events("request") if x["path"] == CHAT]
        c.ask("POST", CHAT, BODY)
        self.assertEqual(r.admin("POST", "/log-level?level=info").status, 200)
        c.ask("POST", CHAT, BODY)
        c.ask("POST", CHAT + "/render", BODY)
        wait_for(lambda: [x for x in r.events("request") if x["path"].endswith("/render")],
                 "a line at level info")
        self.assertEqual(len(chats()), 1)
        self.assertEqual(r.admin("POST", "/log-level?level=loud").status, 400)
        self.assertEqual(r.admin("POST", "/log-level").status, 400)

    def test_a_signal_moves_the_level_on(self):
        r = self.router([self.engine()])
        seen = []
        for n in range(4):
            r.signal(signal.SIGUSR1)
            seen.append(r.wait_event("log_level", n + 1)["now"])
        self.assertEqual(seen, ["debug", "error", "warn", "info"])

    def test_a_reader_of_the_log_that_stops_does_not_stop_the_router(self):
        e = self.engine()
        p = subprocess.Popen(
            [binary("grapevine"), "--listen", HOST + ":0", "--admin-listen", HOST + ":0",
             "--replica", e.url, "--access-log", "all", "--index-bytes", "32MiB"],
            stderr=subprocess.PIPE)
        try:
            ports = {}
            while len(ports) < 2:
                event = json.loads(p.stderr.readline())
                if event["event"] == "listening":
                    ports[event["port_of"]] = event["port"]
            c = self.client(ports["clients"])
            for _ in range(1500):  # about 500 bytes each: more than a pipe holds
                c.send(request("GET", "/health", None, [("X-Request-Id", "x" * 100)]))
                c.read()
            self.assertEqual(c.ask("GET", "/v1/models").status, 200)
        finally:
            p.send_signal(signal.SIGTERM)
            p.send_signal(signal.SIGTERM)
            self.assertIn(p.wait(LIMIT), (0, 1))
            p.stderr.close()


class Draining(Case):
    def setUp(self):
        super().setUp()
        self.go = threading.Event()
        self.e = self.engine()

        def handler(asked):
            asked.read_body()
            asked.send(SSE_HEAD + chunk(b"data: 1\n\n"))
            self.go.wait(LIMIT)
            asked.send(chunk(b"data: 2\n\n") + b"0\r\n\r\n")
        self.e.handler = handler

    def tearDown(self):
        self.go.set()
        super().tearDown()

    def stream(self, r):
        c = self.client(r)
        c.send(request("POST", CHAT, BODY))
        c.head()
        return c

    def refuses(self, r):
        try:
            Client(r.port).close()
            return False
        except (ConnectionRefusedError, ConnectionResetError):
            return True

    def test_a_stream_under_way_is_finished_and_nothing_new_is_taken(self):
        r = self.router([self.e])
        c = self.stream(r)
        idle = self.client(r)
        idle.ask("GET", "/health")
        r.signal(signal.SIGTERM)
        wait_for(lambda: self.refuses(r), "new connections refused")
        self.assertTrue(idle.is_closed())
        self.assertEqual(r.admin("GET", "/readyz").status, 503)
        self.assertEqual(r.admin("GET", "/healthz").status, 200)
        self.assertTrue(r.running())
        self.go.set()
        self.assertEqual(c.reader.chunked()[0], b"data: 1\n\ndata: 2\n\n")
        self.assertTrue(c.is_closed())
        self.assertEqual(r.wait(), 0)
        self.assertTrue(r.events("draining") and r.events("exit"))

    def test_a_request_that_is_waiting_for_its_answer_gets_it_and_is_told_to_go(self):
        def handler(asked):
            asked.read_body()
            self.go.wait(LIMIT)
            asked.send(answer(200, b"late"))
        self.e.handler = handler
        r = self.router([self.e])
        c = self.client(r)
        c.send(request("POST", CHAT, BODY))
        half = self.client(r)
        half.send(request("POST", CHAT, BODY)[:-5])
        self.e.wait_request()
        r.signal(signal.SIGTERM)
        r.wait_event("draining")
        half.send(request("POST", CHAT, BODY)[-5:])
        self.e.wait_request(2)
        self.go.set()
        for x in (c, half):
            got = x.read()
            self.assertEqual((got.body, got.get("connection")), (b"late", "close"))
            self.assertTrue(x.is_closed())
        self.assertEqual(r.wait(), 0)

    def test_a_connection_that_was_just_accepted_may_still_ask(self):
        """Its client could not know; on a rolling restart such requests failed."""
        self.e.replies(answer(200, b"in time"))
        r = self.router([self.e])
        fresh, silent, used = (self.client(r) for _ in range(3))
        self.assertEqual(used.ask("GET", "/health").status, 200)
        wait_for(lambda: r.metric("connections_open") == 4, "all accepted, and this one")
        r.signal(signal.SIGTERM)
        wait_for(lambda: r.admin("GET", "/readyz").status == 503, "the drain")
        got = fresh.ask("POST", CHAT, BODY)
        self.assertEqual((got.body, got.get("connection")), (b"in time", "close"))
        for c in (fresh, silent, used):
            self.assertTrue(c.is_closed())
        self.assertEqual(r.wait(), 0)

    def test_an_idle_router_ends_at_once(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            r = self.router([self.e])
            self.client(r).ask("GET", "/health")
            r.signal(number)
            self.assertEqual(r.wait(), 0)

    def test_two_signals_at_the_same_time_are_a_proper_end(self):
        for _ in range(5):
            r = self.router([self.e])
            r.signal(signal.SIGTERM)
            r.signal(signal.SIGTERM)
            self.assertEqual(r.wait(), 0)

    def test_a_second_signal_ends_it_at_once(self):
        r = self.router([self.e])
        c = self.stream(r)
        r.signal(signal.SIGTERM)
        r.wait_event("draining")
        r.signal(signal.SIGTERM)
        r.expected = r.wait(5)
        self.assertIn(r.expected, (0, 1))
        with self.assertRaises((Cut, ConnectionResetError)):
            c.reader.chunked()
        self.assertTrue(self.e.requests[0] and r.events("exit"))

    def test_the_drain_has_a_limit(self):
        r = self.router([self.e], "--drain-timeout", "300ms")
        c = self.stream(r)
        r.signal(signal.SIGTERM)
        r.expected = r.wait(5)
        self.assertEqual(r.expected, 1)
        self.assertEqual(r.events("drain_timeout")[0]["requests_cut"], 1)
        with self.assertRaises((Cut, ConnectionResetError)):
            c.reader.chunked()

    def test_many_streams_are_cut_by_a_second_signal_without_harm(self):
        r = self.router([self.e])
        clients = [self.stream(r) for _ in range(20)]
        half = self.client(r)
        half.send(request("POST", CHAT, BODY)[:30])
        r.signal(signal.SIGTERM)
        r.wait_event("draining")
        r.signal(signal.SIGTERM)
        r.expected = r.wait(5)
        self.assertEqual(len(clients), 20)


if __name__ == "__main__":
    unittest.main()
