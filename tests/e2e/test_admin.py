"""The admin port: its calls, gvctl, and who may change something."""

import json
import os
import re
import socket
import tempfile
import unittest
from urllib.parse import quote

from lib import HOST, Case, Client, Engine, Router, closed_port, request, wait_for
from test_daemon import run

CHAT = "/v1/chat/completions"
BODY = b'{"model":"m","messages":[{"role":"user","content":"hello there"}]}'


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


class AdminOffLoopback(Case):
    """An admin port reachable from other machines. One of this machine's own addresses acts as another machine: a
    connection to it comes from it."""

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

    def test_changes_without_a_token_are_accepted_from_loopback_only(self):
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
            paths = {path.partition("?")[0] for _, path in self.CHANGES}
            wait_for(lambda: {x["path"] for x in r.events("admin_refused")} == paths, "all in the log")
            self.assertEqual(r.events("admin_refused")[0]["from"], self.outside)
            self.assertIn("comes from %s." % self.outside, got.json["error"]["message"])
            self.assertIn("by 127.0.0.1", got.json["error"]["message"])
            self.assertIn("from loopback only", warned["effect"])
            for path in ("/healthz", "/readyz", "/metrics", "/replicas", "/config"):
                self.assertEqual(self.call(self.outside, r, "GET", path).status, 200, path)
            code, _, err = run("gvctl", "--admin", "http://%s:%d" % (self.outside, r.admin_port),
                               "drain", e.name)
            self.assertEqual((code, "admin-token-file" in err, "(403)" in err), (1, True, True))
            # On the second router 127.0.0.1 comes as ::ffff:127.0.0.1.
            self.assertEqual(r.admin("POST", "/drain?replica=" + e.name, b"").status, 200)

    def test_a_port_off_loopback_accepts_no_changes_without_a_token(self):
        e = self.engine()
        r = self.router([e], "--admin-listen", self.outside + ":0")
        warned = r.wait_event("admin_without_token")
        self.assertIn("no changes at all", warned["effect"])
        self.assertIn("admin-token-file", warned["want"])
        got = self.call(self.outside, r, "POST", "/drain?replica=" + e.name)
        self.assertEqual(got.status, 403)
        message = got.json["error"]["message"]
        self.assertIn("accepts no changes: start it with admin-token-file", message)
        self.assertNotIn("127.0.0.1", message)
        self.assertEqual(self.call(self.outside, r, "GET", "/replicas").status, 200)

    def test_every_caller_needs_the_token(self):
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

    def test_proxied_calls_do_not_count_as_local(self):
        """A proxy on the router's machine made every caller local, so strangers could add a replica, which gets
        prompts."""
        e = self.engine()
        r = self.router([e])
        for name in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Via", "X_Forwarded_For", "X-Client-IP"):
            for path in ("/replicas?replica=127.0.0.1:1", "/explain"):
                got = self.call(HOST, r, "POST", path, [(name, "203.0.113.7")])
                self.assertEqual(got.status, 403, (name, path))
                self.assertIn("comes from a proxy on this machine.", got.json["error"]["message"])
        self.assertEqual([x["name"] for x in r.admin("GET", "/replicas").json], [e.name])

    def test_the_router_leaves_no_core_dump(self):
        """A core dump would contain prompts and keys. Only systemd's unit forbade dumps."""
        pid = self.router([self.engine()]).pid
        with open("/proc/%d/limits" % pid) as f:
            self.assertRegex(f.read(), r"Max core file size +0 ")

    def test_router_memory_is_closed_to_processes_of_the_same_user(self):
        """The core limit does not apply to a core piped to a program (core_pattern), nor to a debugger of the same
        user."""
        nobody = 65534
        drop = ("setpriv", "--reuid", str(nobody), "--regid", str(nobody), "--clear-groups") if os.getuid() == 0 else ()
        user = nobody if drop else os.getuid()
        for args, owner in (((), 0), (("--core-dumps", "on"), user)):
            r = self.router([self.engine()], *args, wrap=drop)
            self.assertEqual(os.stat("/proc/%d/mem" % r.pid).st_uid, owner, args)

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
        self.assertEqual(moved('requests_invalid_total{reason="malformed"}'), 1)
        self.assertEqual(moved('requests_refused_total{reason="control"}'), 1)
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

    def test_explain_names_the_replicas_left_out(self):
        second = self.engine()
        r = self.router([self.e, second])
        name = {"replica": second.name, "why": "draining: by an operator"}
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

    def test_with_the_token_any_host_name_is_accepted(self):
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

    def test_explain_shows_the_tokens_from_a_cache_tier(self):
        """The figure was in JSON only."""
        sim = self.sim("--cache-tokens", "2560", "--tier-tokens", "100000", "--speed-up", "50")
        r = self.router([sim.url + "#cache-tokens=100000"], "--scrape-interval", "100ms", "--generation", "1s", "--ttl", "10m")
        r.wait_up(1)
        bodies = [json.dumps({"model": "sim", "max_tokens": 1, "messages": [
            {"role": "user", "content": "%d %s" % (i, "and so on " * 200)}]}).encode() for i in range(12)]

        def shown(cells):
            """JSON's figures, if the row has the same; in between a belief may have moved."""
            text = run("gvctl", "--admin", "http://%s:%d" % (HOST, r.admin_port), "explain", stdin=bodies[0])[1]
            row = r.admin("POST", "/explain", bodies[0]).json["replicas"][0]
            return row if re.search("> " + re.escape(sim.name) + cells % row + r" +0\.000 ", text) else None
        row = shown(r" +%(cached_tokens)d")
        self.assertEqual((row["cached_tokens"], row["tier_tokens"]), (0, 0))
        for body in bodies:
            asked = self.client(r).ask("POST", CHAT, body, [("Content-Type", "application/json")])
            self.assertEqual(asked.status, 200)
        row = wait_for(lambda: shown(r" +%(cached_tokens)d +%(tier_tokens)d"), "the column")
        self.assertGreater(row["tier_tokens"], 0)

    def test_chunk_aware_finds_documents_in_another_order(self):
        """By the routers' own reading of bodies, of requests and of explain alike."""
        def body(*documents):
            text = "".join(" ".join("%s-%d" % (name, i) for i in range(4000)) for name in documents)
            return json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()

        engines = [self.engine() for _ in range(4)]
        for policy, least, most in (("chunk_aware", 0.5, 0.7), ("cache_aware", 0, 0)):
            r = self.router(engines, "--policy", policy)
            went = self.client(r).ask("POST", "/v1/chat/completions", body("one", "two", "three"))
            got = r.admin("POST", "/explain", body("three", "nine", "one")).json
            row = [c for c in got["replicas"] if c["replica"] == went.get("x-grapevine-replica")][0]
            share = row["cached_tokens"] / got["prompt_tokens"]
            self.assertTrue(least <= share <= most, (policy, share))

    def test_gvctl_has_every_command(self):
        for args, stdin, words in (
                (("replicas",), b"", (self.e.name, "up")),
                (("--json", "replicas"), b"", ('"health"',)),
                (("explain",), BODY, (self.e.name,)),
                (("--json", "explain", "-"), BODY, (self.e.name,)),
                (("ready",), b"", ("ready",)),
                (("metrics",), b"", ("# HELP grapevine_",)),
                (("config",), b"", ("policy: cache_aware",)),
                (("log-level", "warn"), b"", ("the log level is warn",)),
                (("log-level", "info"), b"", ("level is info",)),
                (("drain", self.e.name), b"", (" drains: ",)),
                (("undrain", self.e.name), b"", ("gets requests again",))):
            status, out, err = self.gvctl(*args, stdin=stdin)
            said = "gvctl: warning: that was the last replica that was up" if args[0] == "drain" else ""
            self.assertEqual((status, err.partition(":")[0]), (0, said.partition(":")[0]), args)
            self.assertIn(said, err)
            for word in words:
                self.assertIn(word, out)
        with tempfile.NamedTemporaryFile() as f:
            f.write(BODY)
            f.flush()
            self.assertEqual(self.gvctl("explain", f.name)[0], 0)
        url = "http://%s:%d" % (HOST, self.r.admin_port)
        self.assertEqual(run("gvctl", "ready", env={"GRAPEVINE_ADMIN": url})[0], 0)

    def test_gvctl_reports_errors(self):
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

    def test_errors_name_the_bad_value_and_the_expected_form(self):
        def told(call, status=400, method="POST"):
            got = self.r.admin(method, call, b"")
            self.assertEqual(got.status, status, got.body)
            return got.json["error"]["message"]
        for given, want in (("", "No replica is given"),
                            ("https://10.0.0.1", "the port is missing"),
                            ("10.0.0.1:8000/v1", "want no path"),
                            ("10.0.0.1", "the port is missing"),
                            ("10.0.0.1:0", "want a port from 1 to 65535"),
                            ("10.0.0.1:99999", "want a port from 1 to 65535"),
                            (":8000", "want HOST:PORT, such as"),
                            ("10.0.0.1:8000#weight=2", "only the label #engine="),
                            ("10.0.0.1:8000#kv-events=off", "only the label #engine="),
                            ("10.0.0.1:8000#host-header=client", "only the label #engine="),
                            ("10.0.0.1:8000@1", "ranks are added and removed with their replica"),
                            ("x" * 2000, "want HOST:PORT, such as")):
            self.assertIn(want, told("/replicas?replica=" + quote(given, safe="")))
        for engine, want in (("tgi", "want vllm, sglang or other"), ("x" * 99, "want vllm, sglang or other"),
                             ("vllm#weight=2", "want vllm, sglang or other")):
            self.assertIn(want, told("/replicas?replica=10.0.0.1:80&engine=" + quote(engine)))
        self.assertIn("a rank from 0 to 63", told("/drain?replica=%s@64" % self.e.name))
        self.assertIn("There is no replica `no:1`", told("/replicas?replica=no:1", 404, "DELETE"))
        for given in ("", "12", "z" * 16, "0" * 17):
            self.assertIn("the 16 digits that gvctl poison", told("/poison?hash=" + given, method="DELETE"))

    def test_a_replica_may_be_given_as_its_url(self):
        for command in ("drain", "undrain"):
            for given in (self.e.url, self.e.url + "/"):
                status, out, err = self.gvctl(command, given)
                self.assertEqual((status, out.split()[0]), (0, self.e.name), err)

    def test_an_engine_is_added_twice_and_removed(self):
        other = self.engine()
        for word in ("is added for all routers", "already"):
            status, out, err = self.gvctl("add", other.name, "--engine", "vllm")
            self.assertEqual((status, err), (0, ""))
            self.assertIn(word, out)
        self.assertEqual(self.gvctl("remove", other.name)[0], 0)
        wait_for(lambda: other.name not in [k["name"] for k in self.r.admin("GET", "/replicas").json],
                 "it is removed")

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

    def test_changes_need_the_token(self):
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

    def test_the_admin_port_parses_as_strictly_as_the_client_port(self):
        c = Client(self.r.admin_port)
        c.send(b"POST /explain HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"
               b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        self.assertEqual(c.read().status, 400)
        self.assertTrue(c.is_closed())
        c.close()


if __name__ == "__main__":
    unittest.main()
