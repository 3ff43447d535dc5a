"""Names of replicas and seeds: DNS servers that are silent, /etc/hosts and search domains, addresses that change."""

import json
import os
import random
import signal
import subprocess
import threading
import unittest

from lib import HOST, LIMIT, binary, wait_for
from lib_cluster import Clustered, gvctl
from lib_dns import RCODES, Dns
from lib_http import answer

SILENT = ["silent%d.test" % n for n in range(12)]
COMPLETION = json.dumps({"model": "m", "prompt": "x"}).encode()


class PartlySilent(Dns):
    """Does not answer for some names, or not for their IPv6 addresses."""
    silent_v6 = ()

    def answer(self, query, protocol):
        reply = super().answer(query, protocol)
        name, kind, _ = self.asked[-1]
        if name == "broken.test":
            return reply[:3] + bytes([reply[3] & 0xf0 | RCODES["servfail"]]) + reply[4:]
        return None if name in SILENT or (kind == "AAAA" and name in self.silent_v6) else reply


class Names(Clustered):
    def setUp(self):
        super().setUp()
        network = "127.%d.%d" % tuple(random.randrange(1, 255) for _ in range(2))
        try:
            self.dns, *mute = [PartlySilent({}, host="%s.%d" % (network, i), port=53) for i in (1, 2, 3)]
        except PermissionError:
            self.skipTest("no port 53 for us here")
        self.servers = [self.dns] + mute
        for server in self.servers:
            self.addCleanup(server.stop)
        for server in mute:
            server.mode = "silent"

    def system(self, conf="", hosts=""):
        """Runs a program with a resolv.conf that names the server, and two more that are silent."""
        files = {"/etc/resolv.conf": "".join("nameserver %s\n" % s.host for s in self.servers) + conf + "\n",
                 "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n" + hosts}
        steps = []
        for path, text in files.items():
            own = os.path.join(self.folder.name, os.path.basename(path))
            with open(own, "w") as f:
                f.write(text)
            steps.append("mount --bind %s %s && " % (own, path))
        wrap = ["unshare", "-m", "sh", "-c", "".join(steps) + "exec \"$@\"", "sh"]
        try:
            subprocess.run(wrap + ["true"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            self.skipTest("no mount namespace of our own here")
        return wrap

    def replicas(self, r):
        return {k["name"]: k["health"] for k in r.admin("GET", "/replicas").json}

    def complete(self, client):
        got = client.ask("POST", "/v1/completions", COMPLETION, [("Content-Type", "application/json")])
        return got.status, got.body

    def test_a_silent_dns_server_delays_no_other_lookup(self):
        """A lookup of a silent name takes 18 s here. Before, libuv's pool did two lookups at a time: a replica, a
        seed and the exit waited until the lookups ahead of them had failed."""
        engine = self.engine()
        seed = self.node("seed", [engine])
        self.dns.records.update({"engine.test": {"A": [HOST]}, "half.test": {"A": [HOST]}, "seed.test": {"A": [HOST]}})
        self.dns.silent_v6 = ("half.test", "seed.test")
        silent = ["http://%s:%d" % (name, engine.port) for name in SILENT]
        good = ["%s:%d" % (name, engine.port) for name in ("engine.test", "half.test")]
        seeds = [x for name in SILENT for x in ("--join", name + ":7490")]
        for name in ("token", "namespace", "ca.crt"):
            with open(os.path.join(self.folder.name, name), "w") as f:
                f.write("x")
        r = self.node("r1", silent + ["http://" + name for name in good], *seeds, "--replica-kubernetes", "a/b:80",
                      "--kubernetes-credentials", self.folder.name, join="seed.test:%d" % seed.gossip_port,
                      ready=False, wrap=self.system(),
                      env={"KUBERNETES_SERVICE_HOST": SILENT[0], "KUBERNETES_SERVICE_PORT": "443"})
        wait_for(lambda: [self.replicas(r).get(name) for name in good] == ["up", "up"], "good names are up")
        client = self.client(r)
        self.assertEqual(self.complete(client)[0], 200)
        client.close()
        self.wait_alive(r, ["r1", "seed"])
        r.signal(signal.SIGTERM)
        self.assertEqual(r.wait(), 0)
        self.assertEqual([e["event"] for e in r.events() if e["event"].endswith("_unresolved")], [])

    def test_the_reason_for_a_missing_address_is_reported(self):
        """All three were "no health check has answered yet", then "its health checks fail: the engine's log says why"."""
        self.servers = [self.dns]
        causes = {SILENT[0]: ("dns_silent", "no DNS server answers", "check that the nameserver in /etc/resolv.conf is up"),
                  "gone.test": ("no_address", "the name does not exist", "correct the name"),
                  "broken.test": ("dns_fails", "the DNS server answers with an error", "replica_unresolved in the")}
        r = self.router(["http://%s:8000" % name for name in causes], wait_up=False, wrap=self.system())
        wait_for(lambda: {k["name"]: (k["health"], k["why"]) for k in r.admin("GET", "/replicas").json} ==
                 {name + ":8000": ("down", why) for name, (why, _, _) in causes.items()}, "each cause is told")
        wait_for(lambda: len({e["host"] for e in r.events("replica_unresolved")}) == 3, "all look-ups failed", 20)
        errors = {e["replica"]: e["error"] for e in r.events("replica_unresolved")}
        down = {e["replica"]: e["error"] for e in r.events("replica_down")}
        said, told = (gvctl(command, admin=r.admin_port)[1] for command in ("replicas", "status"))
        for name, (why, error, want) in causes.items():
            self.assertIn(error, errors[name + ":8000"])
            self.assertRegex(said, r"- %s:8000  without an address: .*: %s" % (name, want))
            self.assertIn("%s:8000 (without an address: " % name, told)
        self.assertEqual(down[SILENT[0] + ":8000"], "no DNS server answers for its name")
        self.assertEqual(down["gone.test:8000"], "its name has no address")
        events = gvctl("events", admin=r.admin_port)[1]
        self.assertIn("Replica %s:8000 is without an address: no DNS server answers for its name." % SILENT[0], events)
        self.assertIn("The name of replica broken.test:8000 cannot be looked up: the DNS server answers with", events)

    def test_gvctls_timeout_includes_the_dns_lookup(self):
        """Before, --timeout did not include the lookup, which the system gave up after 10 s."""
        self.servers = [self.dns]
        p = subprocess.run(self.system() + [binary("gvctl"), "--admin", "http://%s:9090" % SILENT[0], "replicas", "--timeout", "1"],
                           capture_output=True, timeout=LIMIT)
        self.assertEqual((p.returncode, p.stdout), (1, b""))
        self.assertIn(b"gvctl: no answer to the DNS lookup of %s within 1 s\n" % SILENT[0].encode(), p.stderr)

    def test_names_resolve_as_with_the_systems_resolver(self):
        """/etc/hosts goes before DNS for a name, in all kinds of addresses; search domains; IPv6; invalid names."""
        engine, six = self.engine(), self.engine(host="::1")
        self.dns.records.update({"pinned.test": {"A": ["127.0.0.66"], "AAAA": ["::66"]}, "six.test": {"AAAA": ["::1"]},
                                 "short.zone.test": {"A": [HOST]}, "a.b.zone.test": {"A": [HOST]},
                                 "short.other.test": {"AAAA": ["::66"]}})
        names = ["%s:%d" % (name, engine.port) for name in
                 ("pinned.test", "pinned2.test", "short", "a.b", "short.zone.test.", "localhost", HOST)]
        names += ["six.test:%d" % six.port, six.name, "localhost:%d" % six.port]
        r = self.router(["http://" + name for name in names], wait_up=False,
                        wrap=self.system("search nowhere.test zone.test other.test\noptions ndots:2",
                                         "%s pinned.test pinned2.test\n" % HOST))
        wait_for(lambda: set(self.replicas(r).values()) == {"up"} and len(self.replicas(r)) == len(names),
                 "all are up")
        self.assertNotIn("pinned.test", [name for name, _, _ in self.dns.asked])
        self.assertNotIn("short.other.test", [name for name, _, _ in self.dns.asked])  # another one of that name

    def test_a_changed_address_is_used_and_old_requests_finish(self):
        """The old address still answers, and clients keep it busy. Requests under way there finish."""
        release = threading.Event()
        self.addCleanup(release.set)
        old = self.engine(host="127.0.0.2")
        new = self.engine(host="127.0.0.3", port=old.port)

        def handler(engine):
            def answer_with_its_address(asked):
                if b"wait" in asked.read_body():
                    release.wait()
                asked.send(answer(200, json.dumps({"at": engine.name}).encode()))
            return answer_with_its_address
        for engine in (old, new):
            engine.handler = handler(engine)
        self.dns.records["engine.test"] = {"A": ["127.0.0.2"]}
        r = self.router(["http://engine.test:%d" % old.port], wrap=self.system())
        wait_for(lambda: [x["health"] for x in r.replicas_told()] == ["up"], "it is up")
        steady = self.client(r)

        def served_by():
            status, body = self.complete(steady)
            self.assertEqual(status, 200, body)
            return json.loads(body)["at"]
        self.assertEqual(served_by(), old.name)
        slow = self.client(r)
        slow.send(b"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 29\r\n"
                  b"\r\n{\"model\":\"m\",\"prompt\":\"wait\"}")
        old.wait_request(2)
        self.dns.records["engine.test"]["A"] = ["127.0.0.3"]
        wait_for(lambda: served_by() == new.name, "the new address serves", 45, step=0.1)
        self.assertEqual({served_by() for _ in range(20)}, {new.name})
        release.set()
        self.assertEqual(json.loads(slow.read().body)["at"], old.name)
        self.assertEqual(r.metric("retries_total"), 0)


if __name__ == "__main__":
    unittest.main()
