"""The process: settings, first moments, logs, signals."""

import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

from lib import (HOST, LIMIT, SSE_HEAD, Case, Client, Cut, answer, answer_json, binary, chunk,
                 closed_port, rate_of, request, slow_ms, wait_for)

CHAT = "/v1/chat/completions"
BODY = b'{"model":"m","messages":[{"role":"user","content":"hello there"}]}'


def run(name, *args, env=None, stdin=b""):
    full = {k: v for k, v in os.environ.items() if not k.startswith("GRAPEVINE_")}
    full.update(env or {})
    p = subprocess.run([binary(name)] + list(args), input=stdin, capture_output=True, env=full,
                       timeout=LIMIT)
    return p.returncode, p.stdout.decode(), p.stderr.decode()


class Settings(Case):
    ONE = ("--replica", "http://10.0.0.1:8000")

    def test_help_lists_every_setting(self):
        status, out, err = run("grapevine", "--help")
        self.assertEqual((status, err), (0, ""))
        for name in ("--listen", "--admin-listen", "--replica", "--policy", "--other-paths",
                     "--config", "--check-config", "--drain-timeout"):
            self.assertIn(name, out)
        self.assertEqual(run("grapevine", "-h")[1], out)

    def test_version(self):
        status, out, err = run("grapevine", "--version")
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"^grapevine \d+\.\d+\.\d+(\+[0-9a-f]{8})?\n$")

    def test_check_config_shows_each_value_and_its_source(self):
        status, out, err = run("grapevine", "--check-config", *self.ONE, "--policy", "random",
                               env={"GRAPEVINE_TTL": "90s"})
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"policy: random +# flag")
        self.assertRegex(out, r"ttl: 90s +# GRAPEVINE_TTL")
        self.assertRegex(out, r"listen: 0.0.0.0:8080 +# default")

    def test_an_empty_file_sets_nothing(self):
        """An empty ConfigMap mounts as an empty file; libyaml aborted the start on it."""
        status, out, err = run("grapevine", "--check-config", "--config", "/dev/null", *self.ONE)
        self.assertEqual((status, err), (0, ""))

    def test_the_variable_of_gvctl_is_no_setting(self):
        status, _, err = run("grapevine", "--check-config", *self.ONE,
                             env={"GRAPEVINE_ADMIN": "http://127.0.0.1:9090"})
        self.assertEqual((status, err), (0, ""))

    def test_check_config_prints_a_valid_config(self):
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

    def test_a_bad_setting_is_one_line_with_name_value_and_valid_form(self):
        self.bad(*self.ONE, "--policy", "fastest", words=("policy", "fastest", "cache_aware"))
        self.bad(*self.ONE, "--listen", "nonsense", words=("listen", "nonsense", "HOST:PORT"))
        self.bad(*self.ONE, "--listen", "127.0.0.1:99999", words=("listen", "99999"))
        self.bad(*self.ONE, "--ttl", "5", words=("ttl", '"5"'))
        self.bad(*self.ONE, "--ttl", "-5s", words=("ttl",))
        self.bad(*self.ONE, "--body-bytes-max", "lots", words=("body-bytes-max", "lots"))
        self.bad(*self.ONE, "--other-paths", "maybe", words=("other-paths", "pass", "refuse"))
        self.bad(*self.ONE, "--retries-max", "99", words=("retries-max", "99", "16"))
        self.bad("--replica", "10.0.0.1:8000", words=("replica", "http://"))
        self.bad("--replica", "https://a:1/path", words=("replica", "path"))
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

    def test_an_index_too_small_is_reported_as_a_bad_setting(self):
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

    def test_flags_override_the_environment_and_the_file(self):
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

    def test_errors_in_a_settings_file_name_the_line(self):
        for text, words in (("replica: [http://a:1]\npolicy: x\n", ("policy", ":2")),
                            ("replica: http://a:1\nnonsense: 1\n", ("nonsense",)),
                            ("replica: [\n", ()),
                            ("ttl: 1s\nttl: 2s\nreplica: http://a:1\n", ("ttl",)),
                            ("a: {b: c}\n", ())):
            with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
                f.write(text)
                f.flush()
                self.bad("--config", f.name, words=words)


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

    def test_the_router_is_ready_when_a_replica_has_listed_its_models(self):
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
                             (503, "server_error"))
            self.assertIn("gvctl replicas", got.json["error"]["message"])
        go.set()
        wait_for(lambda: self.ready(r), "ready")
        self.assertEqual([m["id"] for m in r.get("/v1/models").json["data"]], ["m"])

    def test_an_engine_without_a_model_list_does_not_delay_readiness(self):
        for probe in (lambda asked: asked.send(answer(404, b"")),
                      lambda asked: asked.send(answer(500, b"")),
                      lambda asked: asked.send(b"nonsense\r\n\r\n"),
                      lambda asked: asked.wait_gone()):
            _, r = self.start(probe, "--health-timeout", slow_ms(1500))
            wait_for(lambda: self.ready(r), "ready")
            self.assertEqual(r.get("/v1/models").status, 503)
            self.assertEqual(self.client(r).post(CHAT, {"model": "m"}).status, 200)

    def test_a_model_list_may_be_empty(self):
        _, r = self.start(lambda asked: asked.send(answer_json({"object": "list", "data": []})))
        wait_for(lambda: self.ready(r), "ready")
        got = r.get("/v1/models")
        self.assertEqual((got.status, got.json["data"]), (200, []))
        self.assertEqual(r.get("/v1/models/m").status, 404)

    def test_without_replicas_the_model_list_is_503(self):
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

    def test_access_log_all_logs_every_request(self):
        """Before, lines after the first 50 of a second were dropped."""
        e = self.engine()
        r = self.router([e], "--access-log", "all")
        c = self.client(r)
        for _ in range(300):
            self.assertEqual(c.ask("GET", "/ping").status, 200)
        c.ask("POST", CHAT, BODY)
        r.stop()
        lines = [x for x in r.events("request") if x["path"] != "/v1/models"]
        self.assertEqual(len(lines), 301)
        self.assertEqual([lines[-1][name] for name in ("method", "model", "stream")],
                         ["POST", json.loads(BODY)["model"], json.loads(BODY).get("stream", False)])

    def test_the_access_log_can_be_errors_only_or_off(self):
        e = self.engine()
        for setting, wanted in (("errors", [403]), ("off", []), ("all", [200, 403, 404])):
            r = self.router([e], "--access-log", setting)
            c = self.client(r)
            c.ask("POST", CHAT, BODY)
            c.ask("GET", "/sleep")
            c.ask("GET", "/a-mistake")
            r.stop()
            self.assertEqual([(x.get("reason"), x.get("invalid")) for x in r.events("request") if x["status"] == 404],
                             [(None, "path")] if setting == "all" else [])
            self.assertEqual([x["status"] for x in r.events("request")
                              if x["path"] != "/v1/models"], wanted)

    def test_probes_of_an_unready_router_are_not_logged_as_errors(self):
        """Each probe was logged as an error while the engines loaded."""
        for setting, wanted in (("errors", [("/sleep", 403)]),
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

    def test_the_log_level_changes_at_run_time(self):
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

    def test_sigusr1_moves_the_log_level_on(self):
        r = self.router([self.engine()])
        seen = []
        for n in range(4):
            r.signal(signal.SIGUSR1)
            seen.append(r.wait_event("log_level", n + 1)["now"])
        self.assertEqual(seen, ["debug", "error", "warn", "info"])

    def test_a_stalled_log_reader_does_not_stop_the_router(self):
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
            wait_for(lambda: c.ask("GET", "/v1/models").status == 200, "the engine's models")
        finally:
            p.send_signal(signal.SIGTERM)
            p.send_signal(signal.SIGTERM)
            self.assertIn(p.wait(LIMIT), (0, 1))
            p.stderr.close()


class Idle(Case):
    @staticmethod
    def wake_ups(r):
        """The kernel's count of the times that the loop's thread has slept."""
        with open("/proc/%d/status" % r.pid) as f:
            return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", f.read(), re.M).group(1))

    def sleeps(self, *args):
        r = self.router([], *args)
        c = self.client(r)  # an idle connection has a time limit, and costs nothing
        self.assertEqual(c.ask("GET", "/health").status, 503)
        wait_for(lambda: rate_of(lambda: self.wake_ups(r)) < 10, "a second with few wake-ups: %s" % (args,))

    def test_a_router_without_replicas_wakes_a_few_times_a_second(self):
        with tempfile.TemporaryDirectory() as folder:
            replicas = os.path.join(folder, "replicas")
            with open(replicas, "w") as f:
                f.write("# none yet\n")
            alone = ("--replica-file", replicas)
            gossip = ("--gossip-listen", HOST + ":0", "--insecure-gossip", "on")
            for args in (alone, alone + gossip):
                self.sleeps(*args)


class Streams(Case):
    """A missing standard stream had its number given to a socket or to libuv's own pipe: log lines went
    there, and each stop ended with an abort."""
    CLOSED = ("0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-")

    def start(self, program, *args, closed):
        p = subprocess.Popen(["sh", "-c", 'exec "$0" "$@" ' + closed, binary(program)] + list(args),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(lambda: (p.poll() is None and p.kill(), p.communicate()))
        return p

    def test_a_router_without_standard_streams_serves_and_stops(self):
        engine = self.engine()
        started = []
        for closed in self.CLOSED:
            port = closed_port()
            p = self.start("grapevine", "--replica", engine.url, "--listen", "%s:%d" % (HOST, port),
                           "--admin-listen", HOST + ":0", "--index-bytes", "32MiB",
                           "--drain-delay", "0", closed=closed)
            started.append((p, port, closed))

        def ready(port):
            try:
                return self.client(port).ask("GET", "/health").status == 200
            except OSError:
                return False
        for p, port, closed in started:
            wait_for(lambda: ready(port), "a router started with " + closed)
            for fd in range(3):
                missing = "%d>" % fd in closed or "%d<" % fd in closed
                at = os.readlink("/proc/%d/fd/%d" % (p.pid, fd))
                self.assertEqual(at == "/dev/null", missing, "%s: %d is %s" % (closed, fd, at))
            p.terminate()
        for p, _, closed in started:
            self.assertEqual(p.wait(LIMIT), 0, closed)

    def test_gvctl_without_standard_streams(self):
        """gvctl answers as it does with them, and fails if it could not print a new key."""
        router = self.router([self.engine()])
        admin = "http://%s:%d" % (HOST, router.admin_port)
        for closed in self.CLOSED:
            p = self.start("gvctl", "--admin", admin, "status", closed=closed)
            self.assertEqual(p.wait(LIMIT), 0, closed)
            p = self.start("gvctl", "keygen", closed=closed)
            self.assertEqual(p.wait(LIMIT) == 0, "1>" not in closed, closed)


class Draining(Case):
    def setUp(self):
        super().setUp()
        self.go = threading.Event()
        self.e = self.engine()

        def handler(asked):
            asked.read_body()
            asked.send(SSE_HEAD + chunk(b'data: {"text":"1"}\n\n'))
            self.go.wait(LIMIT)
            asked.send(chunk(b'data: {"text":"2"}\n\ndata: [DONE]\n\n') + b"0\r\n\r\n")
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

    def test_a_draining_router_finishes_streams_and_accepts_nothing_new(self):
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
        self.assertEqual(c.reader.chunked()[0], b'data: {"text":"1"}\n\n'
                         b'data: {"text":"2"}\n\ndata: [DONE]\n\n')
        self.assertTrue(c.is_closed())
        self.assertEqual(r.wait(), 0)
        self.assertTrue(r.events("draining") and r.events("exit"))

    def test_a_waiting_request_gets_its_answer_with_connection_close(self):
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

    def test_a_connection_that_was_just_accepted_may_send_a_request(self):
        """Its client could not know of the drain; on a rolling restart such requests failed."""
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

    def test_two_signals_at_the_same_time_end_the_router_with_status_0(self):
        for _ in range(5):
            r = self.router([self.e])
            r.signal(signal.SIGTERM)
            r.signal(signal.SIGTERM)
            self.assertEqual(r.wait(), 0)

    def test_a_second_signal_ends_the_router_at_once(self):
        r = self.router([self.e])
        c = self.stream(r)
        r.signal(signal.SIGTERM)
        r.wait_event("draining")
        r.signal(signal.SIGTERM)
        r.expected = r.wait()
        self.assertIn(r.expected, (0, 1))
        with self.assertRaises((Cut, ConnectionResetError)):
            c.reader.chunked()
        self.assertTrue(self.e.requests[0] and r.events("exit"))

    def test_the_drain_has_a_limit(self):
        r = self.router([self.e], "--drain-timeout", "300ms")
        c = self.stream(r)
        r.signal(signal.SIGTERM)
        r.expected = r.wait()
        self.assertEqual(r.expected, 1)
        self.assertEqual(r.events("drain_timeout")[0]["requests_cut"], 1)
        with self.assertRaises((Cut, ConnectionResetError)):
            c.reader.chunked()

    def test_a_second_signal_cuts_many_streams_without_a_crash(self):
        r = self.router([self.e])
        clients = [self.stream(r) for _ in range(20)]
        half = self.client(r)
        half.send(request("POST", CHAT, BODY)[:30])
        r.signal(signal.SIGTERM)
        r.wait_event("draining")
        r.signal(signal.SIGTERM)
        r.expected = r.wait()
        self.assertEqual(len(clients), 20)


if __name__ == "__main__":
    unittest.main()
