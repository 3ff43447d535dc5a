"""Replicas that come and go: found by DNS and in files, drained, forgotten, while clients ask."""

import json
import os
import random
import shutil
import subprocess
import tempfile
import threading
import unittest

from lib import HOST, LIMIT, Case, Client, answer, closed_port, wait_for
from lib_dns import Dns
from lib_cluster import Clustered, gvctl, run_grapevine

SLOW_S = 0.02  # an answer's time: some requests are always under way
ADDRESSES = ["127.0.0.%d" % n for n in range(2, 60)]


class Asking(threading.Thread):
    """Clients that ask one after the other until stop()."""

    def __init__(self, case, *ports, clients=4):
        super().__init__(daemon=True)
        self.ports, self.clients = ports, clients
        self.bad, self.served, self.lock = [], {}, threading.Lock()
        self.ending = threading.Event()
        self.start()
        case.addCleanup(self.ending.set)

    def one(self, port):
        client = Client(port)
        while not self.ending.is_set():
            got = client.ask("POST", "/v1/completions", b'{"model":"m","prompt":"x"}',
                             [("Content-Type", "application/json")])
            with self.lock:
                name = got.get("x-grapevine-replica")
                self.served[name] = self.served.get(name, 0) + 1
                if got.status != 200:
                    self.bad.append((got.status, got.body))
        client.close()

    def run(self):
        threads = [threading.Thread(target=self.one, args=(port,), daemon=True)
                   for port in self.ports for _ in range(self.clients)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    def count(self, name):
        with self.lock:
            return self.served.get(name, 0)

    def wait_used(self, name):
        before = self.count(name)
        wait_for(lambda: self.count(name) > before, "requests at " + name)

    def stop(self):
        self.ending.set()
        self.join(LIMIT)
        return self.bad


class Found(Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.file = os.path.join(self.folder.name, "replicas")

    def tearDown(self):
        super().tearDown()
        self.folder.cleanup()

    def pod(self, host=HOST, port=0):
        """An engine whose answers take a moment."""
        engine = self.engine(host=host, port=port)
        wait = threading.Event()

        def handler(asked):
            asked.read_body()
            wait.wait(SLOW_S)
            asked.send(answer(200, b'{"id":"x","object":"text_completion","choices":[]}'))
        engine.handler = handler
        return engine

    def write(self, *lines, path=None):
        with open(path or self.file, "w") as f:
            f.write("".join(line + "\n" for line in lines))

    def replicas(self, r):
        got = r.admin("GET", "/replicas")
        self.assertEqual(got.status, 200, got)
        return {k["name"]: k for k in got.json}

    def wait_replicas(self, r, *names, health="up"):
        """Waits until exactly these are up; removed ones may still be listed."""
        def there():
            now = {n: k["health"] for n, k in self.replicas(r).items()}
            return all(now.get(n) == health for n in names) and \
                all(h in ("draining", "down") for n, h in now.items() if n not in names)
        wait_for(there, "replicas %s (there are %s)" % (names, self.replicas(r).keys()), step=0.05)

    def wait_listed(self, r, *names):
        """Exactly these are in a list of some source."""
        wait_for(lambda: sorted(names) == sorted(n for n, k in self.replicas(r).items()
                                                 if k["sources"]), "lists of %s" % (names,))

    def found(self, *args, **how):
        return self.router([], *args, wait_up=False, **how)

    def sources(self, r, name):
        return self.replicas(r)[name]["sources"]

    def leave(self, engine):
        """The pod ends as pods do: it finishes its requests, then its port is closed."""
        busy = threading.Event()
        wait_for(lambda: all(a.body is not None for a in list(engine.requests)), "the last bodies")
        busy.wait(5 * SLOW_S)
        engine.refuse()


class Files(Found):
    def test_changes_of_a_replica_file_are_followed(self):
        a, b, c = self.pod(), self.pod(), self.pod()
        self.write("# two engines", a.url, "", b.url + "#weight=2#engine=vllm   # the new one")
        r = self.found("--replica-file", self.file)
        self.wait_replicas(r, a.name, b.name)
        shown = self.replicas(r)
        self.assertEqual((shown[a.name]["weight"], shown[b.name]["weight"]), (1, 2))
        self.assertEqual(shown[b.name]["engine"], "vllm")
        self.assertEqual(shown[a.name]["sources"], ["file " + self.file])
        asking = Asking(self, r.port)
        asking.wait_used(a.name)
        self.write("- " + c.url, "- url: " + b.url, "  weight: 0.5")
        self.wait_replicas(r, b.name, c.name)
        asking.wait_used(c.name)
        wait_for(lambda: self.replicas(r).get(a.name, {}).get("health") == "draining", "it drains")
        self.leave(a)
        self.assertEqual(self.replicas(r)[b.name]["weight"], 0.5)
        asking.wait_used(b.name)
        self.assertEqual(asking.stop(), [])
        event = r.events("discovered")[-1]
        self.assertEqual((event["entries"], event["added"], event["gone"]), (2, 1, 1))
        status, out, err = gvctl("replicas", "-o", "wide", admin=r.admin_port)
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"(?m)^%s .* file " % c.name)
        status, out, err = gvctl("sources", admin=r.admin_port)
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"(?m)^file +2 +0 +0 +[0-9.]+  " + self.file)

    def test_a_symlink_that_is_swapped_is_followed(self):
        """As a ConfigMap is mounted: FILE -> ..data/replicas, ..data -> ..2026_1/"""
        a, b = self.pod(), self.pod()
        for name, engine in (("..1", a), ("..2", b)):
            os.mkdir(os.path.join(self.folder.name, name))
            self.write(engine.url, path=os.path.join(self.folder.name, name, "replicas"))
        data = os.path.join(self.folder.name, "..data")
        os.symlink("..1", data)
        os.symlink("..data/replicas", self.file)
        r = self.found("--replica-file", self.file)
        self.wait_replicas(r, a.name)
        asking = Asking(self, r.port)
        asking.wait_used(a.name)
        os.symlink("..2", data + "_tmp")
        os.rename(data + "_tmp", data)
        shutil.rmtree(os.path.join(self.folder.name, "..1"))
        self.wait_replicas(r, b.name)
        asking.wait_used(b.name)
        self.leave(a)
        asking.wait_used(b.name)
        self.assertEqual(asking.stop(), [])

    def test_a_replica_that_its_source_dropped_cannot_be_undrained(self):
        a, b = self.pod(), self.pod()
        self.write(a.url, b.url)
        r = self.found("--replica-file", self.file)
        self.wait_replicas(r, a.name, b.name)
        self.write(a.url)
        wait_for(lambda: self.replicas(r)[b.name]["health"] == "draining", "it drains")
        self.assertEqual(r.admin("POST", "/undrain?replica=" + b.name).json,
                         {"ok": True, "replica": b.name, "drained_by": "no source lists it any more"})
        self.assertEqual(r.admin("POST", "/undrain?replica=" + a.name).json, {"ok": True, "replica": a.name})
        line, = [x for x in gvctl("replicas", "-o", "wide", admin=r.admin_port)[1].splitlines()
                 if x.startswith(b.name)]
        self.assertIn(" gone ", line)
        # An operator's addition has priority over the source.
        self.assertEqual(gvctl("add", b.name, admin=r.admin_port)[0], 0)
        self.wait_replicas(r, a.name, b.name)

    def test_a_broken_file_keeps_the_list(self):
        a, b = self.pod(), self.pod()
        self.write(a.url)
        r = self.found("--replica-file", self.file)
        self.wait_replicas(r, a.name)
        self.write(a.url, "# of the new rack", "10.0.0.1:8000")
        failed = r.wait_event("discovery_failed")
        self.assertEqual(failed["error"], "replica-file %s:3: want a URL such as "
                                          "http://10.0.0.1:8000 (here: 10.0.0.1:8000)" % self.file)
        self.assertEqual((failed["level"], failed["entries"]), ("warn", 1))
        self.wait_replicas(r, a.name)
        os.unlink(self.file)
        self.assertIn("No such file", r.wait_event("discovery_failed", 2)["error"])
        self.wait_replicas(r, a.name)
        self.write(b.url)
        r.wait_event("discovery_works")
        self.wait_replicas(r, b.name)
        self.assertEqual(len(r.events("discovery_failed")), 2)
        m = r.metrics()
        label = '{source="file %s"}' % self.file
        self.assertEqual(m["grapevine_discovery_entries" + label], 1)
        self.assertEqual(m["grapevine_discovery_failing" + label], 0)
        self.assertGreaterEqual(m["grapevine_discovery_failures_total" + label], 2)
        self.assertGreaterEqual(m["grapevine_discovery_age_seconds" + label], 0)

    def test_a_missing_file_is_waited_for(self):
        r = self.found("--replica-file", self.file)
        self.assertIn("No such file", r.wait_event("discovery_failed")["error"])
        self.assertEqual(r.admin("GET", "/readyz").status, 503)
        self.assertEqual(r.get("/v1/models").status, 503)
        a = self.pod()
        self.write(a.url)
        self.wait_replicas(r, a.name)
        wait_for(lambda: r.admin("GET", "/readyz").status == 200, "ready")

    def test_check_config_reads_the_file(self):
        self.write("http://a:1", "http://b:1#weight=0")
        status, err = run_grapevine("--replica-file", self.file, "--check-config")
        self.assertEqual(status, 2)
        self.assertIn("%s:2: after # want weight= and a number from 0.1 to 100" % self.file, err)
        status, err = run_grapevine("--replica-file", self.file + ".gone", "--check-config")
        self.assertEqual(status, 2)
        self.assertIn("No such file", err)
        self.write("http://a:1")
        status, err = run_grapevine("--replica-file", self.file, "--check-config")
        self.assertEqual((status, err), (0, ""))

    def test_check_config_reads_the_service_account(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        args = ("--replica-kubernetes", "inference/vllm:8000", "--check-config", "--kubernetes-credentials")
        for name in ("token", "ca.crt"):
            status, err = run_grapevine(*args, folder)
            self.assertEqual(status, 2)
            self.assertRegex(err, r"kubernetes-credentials.*%s/%s.*No such file" % (folder, name))
            with open(os.path.join(folder, name), "w") as f:
                f.write("x")
        self.assertEqual(run_grapevine(*args, folder), (0, ""))

    def test_settings_and_a_file_may_list_the_same_replica(self):
        a, b = self.pod(), self.pod()
        self.write(a.url, b.url)
        r = self.router([a], "--replica-file", self.file)
        self.wait_replicas(r, a.name, b.name)
        self.assertEqual(self.sources(r, a.name), ["settings", "file " + self.file])
        self.write(b.url)
        wait_for(lambda: self.sources(r, a.name) == ["settings"], "one source")
        self.wait_replicas(r, a.name, b.name)

    def test_a_model_that_the_engine_does_not_list(self):
        a, b = self.pod(), self.pod()
        for engine, status in ((a, 404), (b, 401)):
            engine.probes["/v1/models"] = \
                lambda asked, status=status: asked.send(answer(status, b"{}"))
        self.write(a.url + "#model=org/alpha", b.url + "#model=org/beta")
        r = self.found("--replica-file", self.file)
        self.wait_replicas(r, a.name, b.name)
        for model, engine in (("org/alpha", a), ("org/beta", b)) * 3:
            got = self.client(r).ask("POST", "/v1/completions",
                                     json.dumps({"model": model, "prompt": "x"}).encode(),
                                     [("Content-Type", "application/json")])
            self.assertEqual((got.status, got.get("x-grapevine-replica")), (200, engine.name))


class Names(Found):
    """The pods have addresses of their own and one port, as those of a headless service."""

    def setUp(self):
        super().setUp()
        self.dns = Dns({"engines.test": {"A": []}})
        self.port = closed_port()

    def tearDown(self):
        super().tearDown()
        self.dns.stop()

    def pods(self, n, first=0):
        return [self.pod(host=ADDRESSES[first + i], port=self.port) for i in range(n)]

    def says(self, *pods, name="engines.test"):
        self.dns.records[name]["A"] = [p.name.partition(":")[0] for p in pods]

    def looks_up(self, *more, name="engines.test"):
        return self.found("--replica-dns", "%s:%d" % (name, self.port), "--dns-server",
                          self.dns.address, "--replica-dns-interval", "200ms", *more)

    def test_pods_are_replaced_under_load(self):
        pods = self.pods(3)
        self.says(*pods)
        r = self.looks_up()
        self.wait_replicas(r, *[p.name for p in pods])
        self.assertEqual(self.sources(r, pods[0].name), ["dns engines.test:%d" % self.port])
        asking = Asking(self, r.port)
        asking.wait_used(pods[0].name)
        for i in range(3):
            fresh = self.pods(1, first=3 + i)[0]
            gone = pods.pop(0)
            pods.append(fresh)
            self.says(*pods)
            asking.wait_used(fresh.name)
            wait_for(lambda: self.replicas(r).get(gone.name, {}).get("health") == "draining",
                     "it drains")
            self.leave(gone)
            asking.wait_used(pods[0].name)
        self.assertEqual(asking.stop(), [])
        self.wait_replicas(r, *[p.name for p in pods])

    def test_failed_dns_answers_change_nothing(self):
        pods = self.pods(2)
        self.says(*pods)
        r = self.looks_up()
        self.wait_replicas(r, *[p.name for p in pods])
        for number, mode in enumerate(("servfail", "refused", "silent"), 1):
            self.dns.mode = mode
            failed = r.wait_event("discovery_failed", number)
            self.assertEqual((failed["level"], failed["entries"]), ("warn", 2))
            self.wait_replicas(r, *[p.name for p in pods])
            self.dns.mode = None
            r.wait_event("discovery_works", number)
        for number, mode in enumerate(("nxdomain", "empty"), 1):
            self.dns.mode = mode
            self.assertEqual(r.wait_event("discovery_empty", number)["entries"], 2)
            self.wait_replicas(r, *[p.name for p in pods])
            self.dns.mode = None
            asked = len(self.dns.asked)
            wait_for(lambda: len(self.dns.asked) > asked + 4, "another round")
        self.wait_replicas(r, *[p.name for p in pods])
        self.assertEqual(len(r.events("discovered")), 1)

    def test_a_name_that_never_existed_logs_a_warning(self):
        self.says(*self.pods(1))
        for mode, why in (("nxdomain", "the name does not exist"),
                          ("empty", "the name has no addresses")):
            self.dns.mode = mode
            r = self.looks_up()
            empty = r.wait_event("discovery_empty")
            self.assertEqual((empty["level"], empty["why"]), ("warn", why))
            self.assertEqual(r.admin("GET", "/sources").json[-1]["empty"], why)
            status, out, err = gvctl("sources", admin=r.admin_port)
            self.assertEqual(status, 0, err)
            self.assertIn("empty: " + why, out)

    def test_unusable_addresses_are_ignored(self):
        pod = self.pods(1)[0]
        self.says(pod)
        self.dns.records["engines.test"]["A"] += ["0.0.0.0", "255.255.255.255", "224.0.0.1"]
        self.dns.records["engines.test"]["AAAA"] = ["::", "ff02::1"]
        r = self.looks_up()
        self.wait_replicas(r, pod.name)
        self.assertEqual(list(self.replicas(r)), [pod.name])
        self.assertIn("passed over", r.wait_event("discovery_incomplete")["error"])

    def test_a_failing_address_family_does_not_affect_the_other(self):
        pods = self.pods(2)
        self.says(*pods)
        self.dns.modes["AAAA"] = "servfail"
        r = self.looks_up()
        self.wait_replicas(r, *[p.name for p in pods])
        self.assertEqual(r.events("discovery_failed"), [])
        lacks = r.wait_event("discovery_incomplete")["error"]
        self.assertIn("AAAA of engines.test: the DNS server answers with", lacks)
        self.assertIn("incomplete: " + lacks, gvctl("sources", admin=r.admin_port)[1])
        self.dns.modes = {"A": "empty"}
        self.dns.records["engines.test"]["AAAA"] = ["::1"]
        self.wait_listed(r, "[::1]:%d" % self.port)
        self.dns.modes = {"AAAA": "servfail"}
        self.wait_listed(r, *["%s" % p.name for p in pods], "[::1]:%d" % self.port)
        asked = len(self.dns.asked)
        wait_for(lambda: len(self.dns.asked) > asked + 12, "three rounds")
        self.wait_listed(r, *["%s" % p.name for p in pods], "[::1]:%d" % self.port)
        self.assertEqual(r.events("discovery_failed"), [])

    def test_a_server_that_fails_for_ipv4_has_ipv6(self):
        self.dns.records["engines.test"]["AAAA"] = ["::1"]
        self.dns.modes["A"] = "servfail"
        r = self.looks_up()
        self.wait_listed(r, "[::1]:%d" % self.port)
        self.assertEqual(r.events("discovery_failed"), [])

    def test_a_failed_ipv4_query_without_ipv6_records_gives_no_list(self):
        self.dns.modes["A"] = "servfail"
        r = self.looks_up()
        r.wait_event("discovery_failed")
        self.assertEqual(r.events("discovered"), [])

    def test_a_truncated_answer_is_requested_again_over_tcp(self):
        self.dns.records["engines.test"]["A"] = ["127.1.0.%d" % n for n in range(1, 101)]
        self.dns.records["engines.test"]["AAAA"] = ["::1"]
        r = self.looks_up()
        self.assertEqual(r.wait_event("discovered")["entries"], 101)
        self.assertIn(("engines.test", "A", "tcp"), self.dns.asked)
        self.assertIn("[::1]:%d" % self.port, self.replicas(r))

    def test_srv_records_give_ports(self):
        a, b = self.pod(host=ADDRESSES[0]), self.pod(host=ADDRESSES[1])
        self.dns.records.update({
            "_http._tcp.engines.test": {"SRV": [(a.port, "a.test"), (b.port, "b.test")]},
            "a.test": {"A": [ADDRESSES[0]]}, "b.test": {"A": [ADDRESSES[1]]}})
        r = self.found("--replica-dns", "_http._tcp.engines.test#weight=3", "--dns-server",
                       self.dns.address, "--replica-dns-interval", "200ms")
        self.wait_replicas(r, a.name, b.name)
        self.assertEqual(self.replicas(r)[a.name]["weight"], 3)
        del self.dns.records["b.test"]  # a host without an address is none
        self.wait_replicas(r, a.name)

    def test_srv_records_without_a_port_are_reported_as_an_empty_list(self):
        """The log gave "Successful completion" as the reason."""
        self.dns.records["_http._tcp.engines.test"] = {"SRV": [(0, "a.test")]}
        r = self.found("--replica-dns", "_http._tcp.engines.test", "--dns-server", self.dns.address)
        self.assertEqual(r.wait_event("discovery_empty")["why"], "its SRV records name no host with a port")

    def system_dns(self, pod, make=Dns):
        """A DNS server at port 53 that knows one pod."""
        host = "127.%d.%d.%d" % tuple(random.randrange(1, 255) for _ in range(3))
        try:
            server = make({"engines.test": {"A": [pod.name.partition(":")[0]]}}, host=host, port=53)
        except PermissionError:
            self.skipTest("no port 53 for us here")
        self.addCleanup(server.stop)
        return server

    def resolv_conf(self, server):
        """The file's path, and a command prefix under which a program sees the file."""
        path = os.path.join(self.folder.name, "resolv.conf")
        wrap = ["unshare", "-m", "sh", "-c", "mount --bind %s /etc/resolv.conf && exec \"$@\"" % path, "sh"]
        self.write("nameserver " + server.host, path=path)
        try:
            subprocess.run(wrap + ["true"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            self.skipTest("no mount namespace of our own here")
        return path, wrap

    def test_resolv_conf_may_change_during_a_query(self):
        """The IPv6 query is sent from the callback of the IPv4 answer. The query renewed the c-ares channel that was
        calling, and the router crashed."""
        class Rewrites(Dns):
            path = os.devnull

            def answer(self, query, protocol):
                with open(self.path, "a") as f:
                    f.write("# %d\n" % len(self.asked))
                return super().answer(query, protocol)
        pod, = self.pods(1)
        server = self.system_dns(pod, Rewrites)
        path, wrap = self.resolv_conf(server)
        server.path = path
        r = self.found("--replica-dns", "engines.test:%d" % self.port, "--replica-dns-interval", "100ms", wrap=wrap,
                       env={"MALLOC_PERTURB_": "165"})
        self.wait_listed(r, pod.name)
        wait_for(lambda: len(server.asked) >= 20, "ten rounds")
        self.wait_listed(r, pod.name)
        self.assertEqual(r.events("discovery_failed"), [])

    def test_a_changed_resolv_conf_is_read_again(self):
        """As when a machine moves to another network while the router runs."""
        pods = self.pods(2)
        servers = [self.system_dns(pod) for pod in pods]
        path, wrap = self.resolv_conf(servers[0])
        r = self.found("--replica-dns", "engines.test:%d" % self.port, "--replica-dns-interval", "200ms", wrap=wrap)
        self.wait_listed(r, pods[0].name)
        self.write("# another network", "nameserver " + servers[1].host, path=path)
        self.wait_listed(r, pods[1].name)
        self.assertEqual(r.events("discovery_failed"), [])

    def test_names_of_the_hosts_file(self):
        pod = self.pod()
        self.port = pod.port
        r = self.looks_up(name="localhost")
        wait_for(lambda: self.replicas(r).get(pod.name, {}).get("health") == "up", "it is up")

    def test_a_pod_that_comes_back_is_used_at_once(self):
        pods = self.pods(2)
        self.says(*pods)
        r = self.looks_up()
        self.wait_replicas(r, *[p.name for p in pods])
        self.says(pods[0])
        wait_for(lambda: self.replicas(r)[pods[1].name]["health"] == "draining", "it drains")
        self.says(*pods)
        self.wait_replicas(r, *[p.name for p in pods])
        self.assertEqual(len(r.events("replica_added")), 2)  # it was never gone


class Routers(Clustered, Found):
    def setUp(self):
        Found.setUp(self)
        self.key = self.new_key("cluster.key")

    def test_routers_learn_replicas_from_the_router_with_the_source(self):
        a, b = self.pod(), self.pod()
        self.write(a.url)
        first = self.node("r1", [], "--replica-file", self.file)
        second = self.node("r2", [], join=first)
        for r in (first, second):
            self.wait_replicas(r, a.name)
        self.assertEqual(self.sources(second, a.name), [])
        asking = Asking(self, first.port, second.port)
        asking.wait_used(a.name)
        self.write(a.url, b.url)
        for r in (first, second):
            self.wait_replicas(r, a.name, b.name)
        asking.wait_used(b.name)
        self.write(b.url)
        self.wait_replicas(first, b.name)
        # The other router has no list of its own: it learns that no router names the replica any more.
        wait_for(lambda: a.name not in self.replicas(second), "it is gone there")
        self.leave(a)
        asking.wait_used(b.name)
        self.assertEqual(asking.stop(), [])
        status, out, _ = gvctl("replicas", "-o", "wide", admin=second.admin_port)
        self.assertEqual(status, 0)
        self.assertRegex(out, r"(?m)^%s .* heard " % b.name)

    def test_all_routers_restart_while_the_source_is_broken(self):
        """No router can know the source's list: replicas in use stay until the source can be read."""
        a, b = self.pod(), self.pod()
        self.write(a.url, b.url)
        args = ("--replica-file", self.file)
        first = self.node("r1", [], *args)
        second = self.node("r2", [], *args, join=first)
        for r in (first, second):
            self.wait_replicas(r, a.name, b.name)
        self.write("broken")
        first.stop()
        first = self.node("r1", [], *args, join=second)
        self.wait_replicas(first, a.name, b.name)
        second.stop()
        second = self.node("r2", [], *args, join=first)
        self.wait_replicas(second, a.name, b.name)

        def named(name):
            return any(self.replicas(r).get(name, {}).get("configured") for r in (first, second))
        wait_for(lambda: named(a.name) and named(b.name), "a router that lives names them: time takes none")
        for r in (first, second):
            self.assertEqual(sorted(self.replicas(r)), sorted([a.name, b.name]))
        self.write(b.url)
        for r in (first, second):
            wait_for(lambda: sorted(self.replicas(r)) == [b.name], "what the list says")


if __name__ == "__main__":
    unittest.main()
