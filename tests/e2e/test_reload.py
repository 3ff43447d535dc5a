"""Settings that change while the router runs: the file is changed, SIGHUP is sent, requests go on."""

import json
import os
import re
import shutil
import signal
import socket
import tempfile
import threading

from lib import HOST, LIMIT, SSE_HEAD, Case, chunk, request, wait_for
from lib_cluster import Clustered, gvctl
from test_time import TCP_USER_TIMEOUT, sockets_of

CHAT = b'{"model":"m","prompt":"x"}'
PATH = "/v1/completions"


class Reloading(Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.file = os.path.join(self.folder, "grapevine.yaml")

    def write(self, *lines):
        """As editors do: another file of the same name, so no reader sees half of it."""
        with open(self.file + ".new", "w") as f:
            f.write("".join(line + "\n" for line in lines))
        os.rename(self.file + ".new", self.file)

    def started(self, engines, *args, lines=()):
        self.write(*lines)
        return self.router(engines, "--config", self.file, *args)

    def reloaded(self, r, *lines, hup=True):
        """Writes the lines as the new file; returns the router's report. On a busy machine the router may notice the
        file before the signal: then both cause a report, and the first has the changes."""
        def told():
            return r.events("config_reloaded")[before:]
        before = len(r.events("config_reloaded"))
        self.write(*lines)
        if hup:
            r.signal(signal.SIGHUP)
        wait_for(lambda: any(e["by"] == ("signal" if hup else "change") for e in told()), "it is read again")
        return {**told()[-1], "changed": sum(e["changed"] for e in told())}

    def config(self, r):
        return r.admin("GET", "/config").body.decode()

    def ask(self, r):
        return self.client(r).ask("POST", PATH, CHAT)

    def policy(self, r):
        got = r.admin("POST", "/explain", CHAT).json
        return got["policy"]


class File(Reloading):
    def test_a_changed_file_is_noticed(self):
        r = self.started([self.engine()], lines=["policy: round_robin"])
        self.assertEqual(self.policy(r), "round_robin")
        said = self.reloaded(r, "# what follows is new", "policy: random", hup=False)
        self.assertEqual((said["changed"], said["restart_needed"]), (1, 0))
        said = r.wait_event("setting_changed")
        self.assertEqual((said["setting"], said["before"], said["now"]),
                         ("policy", "round_robin", "random"))
        self.assertEqual(self.policy(r), "random")
        self.assertRegex(self.config(r), r"policy: random +# .*grapevine\.yaml:2")
        os.remove(self.file)
        said = r.wait_event("config_refused")
        self.assertIn("No such file", said["error"])
        self.assertEqual(self.policy(r), "random")

    def test_a_refused_file_is_reported_until_it_is_corrected(self):
        """Before, only a log line and an event reported a refusal; monitoring did not notice until a restart failed."""
        r = self.started([self.engine()], lines=["policy: round_robin"])
        r.wait_up(1)
        self.assertEqual(r.metric("config_refused"), 0)
        status, out, err = gvctl("status", "-o", "json", admin=r.admin_port)
        self.assertEqual((status, json.loads(out)["config_refused"]), (0, []))
        for said, lines in (("not allowed", ['policy: "no\x1b[31m such"']),
                            ("nothing", ["policy: random", "nothing: 1"]), ("No such file", None)):
            self.write(*lines) if lines else os.remove(self.file)
            r.signal(signal.SIGHUP)  # the file is watched, too: either may come first, and both may cause a report
            wrong = wait_for(lambda: [e["error"] for e in r.events("config_refused") if said in e["error"]],
                             said)[0]
            self.assertEqual(r.metric("config_refused"), 1)
            self.assertEqual(self.policy(r), "round_robin")
            self.assertTrue(self.config(r).startswith("# config-refused: "), self.config(r))
            told = json.loads(gvctl("config", "-o", "json", admin=r.admin_port)[1])
            self.assertEqual(told["config-refused"]["value"], wrong)
            self.assertEqual(told["policy"]["value"], "round_robin")
            self.assertNotIn("\x1b", gvctl("config", admin=r.admin_port)[1])
            status, out, err = gvctl("status", admin=r.admin_port)
            self.assertEqual((status, err), (0, ""))
            self.assertRegex(out, r"settings     refused: the file cannot be used, .* \(gvctl --admin http://%s:%d config\)\n" %
                             (re.escape(HOST), r.admin_port))
        self.reloaded(r, "policy: random")
        self.assertEqual((r.metric("config_refused"), self.policy(r)), (0, "random"))
        self.assertNotIn("config-refused", self.config(r))
        self.assertNotIn("settings", gvctl("status", admin=r.admin_port)[1])

    def test_a_symlink_that_is_swapped_is_noticed(self):
        """As Kubernetes mounts ConfigMaps: grapevine.yaml -> ..data/grapevine.yaml, ..data -> a folder."""
        for name in ("one", "two"):
            os.mkdir(os.path.join(self.folder, name))
            with open(os.path.join(self.folder, name, "grapevine.yaml"), "w") as f:
                f.write("access-log: %s\n" % ("all" if name == "two" else "off"))
        data = os.path.join(self.folder, "..data")
        os.symlink("one", data)
        os.symlink("..data/grapevine.yaml", self.file)
        r = self.router([self.engine()], "--config", self.file)
        r.wait_up(1)
        os.symlink("two", data + "_tmp")
        os.rename(data + "_tmp", data)
        r.wait_event("config_reloaded")
        self.assertEqual(self.ask(r).status, 200)
        r.wait_logged(PATH)

    def test_a_bad_file_changes_nothing(self):
        r = self.started([self.engine()], lines=["policy: round_robin"])
        r.wait_up(1)
        for lines, error in (
                (["queue-max: 7", "# more", "policy: best"], r'policy = "best" .*grapevine\.yaml:3\): want'),
                (["queue-max: 7", "que-max: 7"], r'"que-max" .*grapevine\.yaml:2\): did you mean'),
                (["queue-max: 7", "node-name: \"open"], r"grapevine\.yaml:\d: not YAML"),
                (["queue-max: 7", "body-bytes-max: 2GiB"], "buffered-bytes-max")):
            self.write(*lines)
            r.signal(signal.SIGHUP)
            wait_for(lambda: any(re.search(error, e["error"]) for e in r.events("config_refused")), error)
            self.assertRegex(self.config(r), "queue-max: 1000 ")
        self.assertEqual((r.events("config_reloaded"), r.events("setting_changed")), ([], []))
        self.assertEqual(self.policy(r), "round_robin")
        self.assertEqual(self.reloaded(r, "queue-max: 7")["changed"], 2)  # and the policy's default
        self.assertRegex(self.config(r), "queue-max: 7 ")

    def test_flags_take_precedence_over_the_file(self):
        self.write("near-tie: 0.1")
        r = self.router([self.engine()], "--policy", "random", "--config", self.file,
                        env={"GRAPEVINE_QUEUE_MAX": "5"})
        said = self.reloaded(r, "policy: round_robin", "queue-max: 9", "near-tie: 0.2")
        self.assertEqual((said["changed"], said["restart_needed"]), (1, 0))
        self.assertEqual(self.policy(r), "random")
        self.assertRegex(self.config(r), r"queue-max: 5 +# GRAPEVINE_QUEUE_MAX")

    def test_settings_that_need_a_restart_are_named(self):
        r = self.started([self.engine()])
        r.wait_up(1)
        said = self.reloaded(r, "ttl: 2h", "queue-max: 9")
        self.assertEqual((said["changed"], said["restart_needed"]), (1, 1))
        said = r.wait_event("setting_waits")
        self.assertEqual((said["setting"], said["in_force"], said["wanted"], said["level"]),
                         ("ttl", "1h", "2h", "warn"))
        status, out, _ = gvctl("config", admin=r.admin_port)
        self.assertEqual(status, 0)
        self.assertRegex(out, r"(?m)^ttl: 1h +# default$")
        self.assertRegex(out, r"(?m)^# These wait for a restart:\n# ttl: 2h +# .*grapevine\.yaml:1\n\Z")
        status, out, _ = gvctl("config", "-o", "json", admin=r.admin_port)
        self.assertEqual(status, 0)
        said = json.loads(out)
        self.assertEqual((said["ttl"]["value"], said["waits for a restart"]["ttl"]["value"]), ("1h", "2h"))
        self.assertEqual(r.metric("config_waits"), 1)
        admin = "http://%s:%d" % (HOST, r.admin_port)
        self.assertIn("settings     1 waits for a restart (gvctl --admin %s config)\n" % admin, gvctl("status", admin=r.admin_port)[1])
        self.assertEqual(self.reloaded(r, "queue-max: 9")["restart_needed"], 0)
        self.assertNotIn("wait for a restart", self.config(r))
        self.assertEqual((r.metric("config_waits"), "settings" in gvctl("status", admin=r.admin_port)[1]), (0, False))

    def test_replicas_are_added_and_removed(self):
        one, two = self.engine(), self.engine()
        self.write("replica: [%s]" % one.url)
        r = self.router([], "--config", self.file)
        r.wait_up(1)
        said = self.reloaded(r, "replica:", "  - " + one.url, "  - " + two.url)
        self.assertEqual((said["changed"], said["restart_needed"]), (1, 0))
        r.wait_up(2)
        self.reloaded(r, "replica: [%s]" % two.url)
        for _ in range(8):
            self.assertEqual(self.ask(r).get("x-grapevine-replica"), two.name)


class Effects(Reloading):
    def test_a_stream_under_way_is_not_cut(self):
        """It ends as it began, while everything else changes; the next request has the new settings."""
        going = threading.Event()

        def slowly(asked):
            asked.read_body()
            asked.send(SSE_HEAD + chunk(b'data: {"choices":[{"text":"a"}]}\n\n'))
            going.wait(LIMIT)
            asked.send(chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        e = self.engine()
        r = self.started([e], lines=["policy: round_robin"])
        r.wait_up(1)
        e.handler = slowly
        client = self.client(r)
        client.send(request("POST", PATH, b'{"model":"m","prompt":"x","stream":true}'))
        e.wait_request()
        for n in range(1, 6):
            self.reloaded(r, "policy: %s" % ("random", "cache_aware")[n % 2], "session-header: x-s%d" % n,
                          "health-path: /health?%d" % n, "upstream-idle-timeout: %ds" % (100 + n))
        going.set()
        got = client.read()
        self.assertEqual(got.status, 200)
        self.assertIn(b"[DONE]", got.body)

    def test_a_new_timeout_applies_to_requests_under_way(self):
        e = self.engine()
        r = self.started([e], lines=["upstream-whole-answer-timeout: 1h", "retries-max: 0"])
        r.wait_up(1)
        e.handler = lambda asked: (asked.read_body(), asked.wait_gone())
        client = self.client(r)
        client.send(request("POST", PATH, CHAT))
        e.wait_request()
        self.reloaded(r, "upstream-whole-answer-timeout: 100ms", "retries-max: 0")
        self.assertEqual(client.read().status, 504)  # the time that it waited before counts

    def test_the_kernels_timeout_of_sockets_changes(self):
        """The client port's sockets have client-write-timeout from the kernel, too."""
        r = self.started([self.engine()], lines=["client-write-timeout: 90s"])
        for limit, ms in (("80s", 80000), ("0", 0), ("70s", 70000)):
            self.reloaded(r, "client-write-timeout: " + limit)
            c = self.client(r)
            self.assertEqual(c.ask("POST", PATH, CHAT).status, 200)
            mine, sockets = c.sock.getsockname()[1], list(sockets_of(r.pid))
            found = {s.getpeername()[1]: s.getsockopt(socket.IPPROTO_TCP, TCP_USER_TIMEOUT) for s in sockets}
            for s in sockets:
                s.close()
            self.assertEqual(found[mine], ms)

    def test_log_settings_change(self):
        r = self.started([self.engine()], lines=["access-log: off", "log-level: info"])
        r.wait_up(1)
        self.assertEqual(self.ask(r).status, 200)
        self.reloaded(r, "access-log: all", "log-level: info")
        self.assertEqual(self.ask(r).status, 200)
        r.wait_logged(PATH)
        self.assertEqual(len([e for e in r.events("request") if e["path"] == PATH]), 1)


class Cluster(Clustered):
    def test_other_routers_learn_the_new_policy(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, "g.yaml")
        with open(path, "w") as f:
            f.write("near-tie: 0.1\n")
        e = self.engine()
        one = self.node("r1", [e], "--config", path)
        other = self.node("r2", [e], join=one)
        self.wait_alive(other, ["r1", "r2"])
        with open(path, "w") as f:
            f.write("policy: random\n")
        one.signal(signal.SIGHUP)
        wait_for(lambda: self.members(other)["r1"].get("policy") == "random", "the policy of r1")
        for line, words in (("ttl: 2h", "1 waits for a restart at r1 \\(gvctl"),
                            ("policy: none", "refused at r1: .* \\(gvctl")):
            with open(path, "w") as f:
                f.write(line + "\n")
            one.signal(signal.SIGHUP)
            words = "settings +%s --admin http://%s:%d config\\)\n" % (words, re.escape(HOST), one.admin_port)
            wait_for(lambda: re.search(words, gvctl("status", admin=other.admin_port)[1]), words)
        self.assertEqual(json.loads(gvctl("status", "-o", "json", admin=other.admin_port)[1])["config_waits"], {"r1": 1})
