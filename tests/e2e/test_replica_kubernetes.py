"""Replicas of a Kubernetes service, from the tests' own API server (lib_k8s)."""

import json
import shutil
import tempfile
import threading
import time

from lib import HOST, LIMIT, Case, Process, answer, binary, wait_for
from lib_k8s import NAMESPACE, READY, STARTING, TERMINATING, Account, Api


def prompt(text):
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()


class Kubernetes(Case):
    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.account = Account(self.folder)
        self.api = Api(self.account)
        self.addCleanup(self.api.stop)

    def follow(self, *args, service=NAMESPACE + "/vllm", account=None, **how):
        return self.router([], "--replica-kubernetes", service, "--kubernetes-credentials",
                           (account or self.account).folder, *args, env=self.api.env,
                           wait_up=False, **how)

    def pod(self, name, conditions=READY):
        """An engine, in a slice of its own: each has another port."""
        engine = self.engine()
        engine.slice = name
        self.set(engine, conditions)
        return engine

    def set(self, engine, conditions):
        self.api.put(engine.slice, [(HOST, conditions)], port=engine.port)

    def wait_used(self, router, *engines):
        """Waits until exactly these may be chosen."""
        want = sorted(e.name for e in engines)
        wait_for(lambda: self.in_use(router) == want, "%s in use" % want)

    def in_use(self, router):
        return sorted(r["name"] for r in router.admin("GET", "/replicas").json
                      if r["health"] == "up")

    def wait_heard(self, router, change):
        """Waits until the router has processed this change."""
        began = time.monotonic()
        change()
        wait_for(lambda: time.monotonic() - began > router.metric("discovery_age_seconds"),
                 "news of the API server")

    def in_flight(self, router, engine):
        """Requests that the router has at the engine; None if the router knows no such replica."""
        return next((r["load"]["requests"] for r in router.admin("GET", "/replicas").json
                     if r["name"] == engine.name), None)

    def failures(self, router):
        return [e["error"] for e in router.events("discovery_failed")]

    def ask(self, router):
        return self.client(router).ask("POST", "/v1/chat/completions", prompt("hello"))


class Load:
    """Clients that ask without a pause."""

    def __init__(self, case, router, clients=4):
        self.statuses = []
        self.ended = False
        self.threads = [threading.Thread(target=self._run, args=(case.client(router), n))
                        for n in range(clients)]
        for t in self.threads:
            t.start()

    def _run(self, client, n):
        turn = 0
        while not self.ended:
            turn += 1
            try:
                self.statuses.append(client.ask("POST", "/v1/chat/completions",
                                                prompt("%d %d" % (n, turn))).status)
            except Exception as error:
                self.statuses.append(error)
                return

    def end(self):
        self.ended = True
        for t in self.threads:
            t.join(LIMIT)
        return [s for s in self.statuses if s != 200]


class Pods(Kubernetes):
    def test_pods_replaced_under_load(self):
        old = [self.pod("a%d" % n) for n in range(3)]
        router = self.follow("--policy", "round_robin")
        self.wait_used(router, *old)
        load = Load(self, router)
        new = []
        for n, engine in enumerate(old):
            fresh = self.engine()
            fresh.slice = "b%d" % n
            self.wait_heard(router, lambda: self.set(fresh, STARTING))
            self.assertIsNone(self.in_flight(router, fresh))
            self.set(fresh, READY)
            fresh.wait_request()  # it is used
            new.append(fresh)
            self.set(engine, TERMINATING)
            wait_for(lambda: engine.name not in self.in_use(router), "it drains")
            wait_for(lambda: self.in_flight(router, engine) == 0, "what was sent is answered")
            count = len(engine.requests)
            self.wait_heard(router, lambda: self.api.delete(engine.slice))
            self.assertEqual(len(engine.requests), count)
            engine.stop()
        self.assertEqual(load.end(), [])
        self.wait_used(router, *new)
        self.assertGreater(min(len(e.requests) for e in new), 0)

    def test_a_pod_that_ends_drains_at_once_and_finishes(self):
        one, two = self.pod("a"), self.pod("b")
        router = self.follow("--policy", "round_robin", "--health-interval", "1h")
        self.wait_used(router, one, two)
        go = threading.Event()

        def slow(asked):
            asked.read_body()
            go.wait(LIMIT)
            asked.send(answer(200, b"late"))
        one.handler = slow
        got = []
        clients = [threading.Thread(target=lambda: got.append(self.ask(router).body))
                   for _ in range(2)]
        for c in clients:
            c.start()
        one.wait_request()
        self.set(one, TERMINATING)
        wait_for(lambda: self.in_use(router) == [two.name], "it drains")
        for _ in range(6):
            self.assertEqual(self.ask(router).status, 200)
        self.assertEqual(len(one.requests), 1)
        self.wait_heard(router, lambda: self.api.delete(one.slice))
        go.set()
        for c in clients:
            c.join(LIMIT)
        self.assertEqual(sorted(got), [b"late", b"ok"])

    def test_a_failed_check_of_the_kubelet_changes_nothing(self):
        one = self.pod("a")
        router = self.follow()
        self.wait_used(router, one)
        self.set(one, {"ready": False, "serving": False, "terminating": False})
        two = self.pod("b")  # comes after it
        self.wait_used(router, one, two)

    def test_a_router_without_the_source_learns_replicas_from_another(self):
        one = self.pod("a")
        first = self.follow("--insecure-gossip", "--gossip-listen", HOST + ":0",
                            "--node-name", "r1")
        second = self.router([], "--insecure-gossip", "--gossip-listen", HOST + ":0", "--node-name",
                             "r2", "--join", "%s:%d" % (HOST, first.gossip_port), wait_up=False)
        self.wait_used(first, one)
        self.wait_used(second, one)
        two = self.pod("b")
        self.wait_used(second, one, two)
        self.set(one, TERMINATING)
        self.wait_used(first, two)
        self.api.delete(one.slice)
        self.assertEqual(self.ask(second).status, 200)

    def test_lists_come_in_pages_and_small_pieces(self):
        engines = [self.pod("s%d" % n) for n in range(5)]
        self.api.piece = 7
        router = self.follow()
        self.wait_used(router, *engines)
        self.assertEqual(len(self.api.lists), 3)
        self.assertTrue(all(q["limit"] == "100" for q in self.api.lists))
        engines.append(self.pod("s5"))
        self.wait_used(router, *engines)
        self.assertEqual(len(self.api.lists), 3)

    def test_ports_labels_and_the_own_namespace(self):
        one = self.pod("a")
        router = self.follow(service="vllm:http#engine=vllm")
        self.wait_used(router, one)
        self.assertEqual(router.admin("GET", "/replicas").json[0]["engine"], "vllm")
        other = self.follow(service="vllm:grpc")
        wait_for(lambda: self.failures(other), "a port that is not there")
        self.assertIn("has no TCP port grpc: its TCP ports are http=%d" % one.port,
                      self.failures(other)[0])

    def test_a_service_twice_with_its_namespace_and_without(self):
        process = Process([binary("grapevine"), "--replica-kubernetes", "vllm#weight=5",
                           "--replica-kubernetes", NAMESPACE + "/vllm",
                           "--kubernetes-credentials", self.account.folder], env=self.api.env)
        self.assertEqual(process.wait(), 1)
        self.assertIn("want each source only once", process.lines[-1])

    def test_a_missing_service_is_reported(self):
        router = self.follow(service=NAMESPACE + "/vlm")
        why = router.wait_event("discovery_empty")["why"]
        self.assertEqual(why, "no EndpointSlice of service vlm in namespace %s: check the name"
                         % NAMESPACE)
        self.assertEqual(router.admin("GET", "/sources").json[0]["empty"], why)


class ApiServer(Kubernetes):
    def test_a_watch_that_breaks_is_resumed(self):
        one = self.pod("a")
        router = self.follow()
        self.wait_used(router, one)
        wait_for(lambda: self.api.watches, "a watch")
        self.api.version = 500
        self.wait_heard(router, self.api.bookmark)  # so it is a good watch
        self.api.cut()
        two = self.pod("b")
        self.wait_used(router, one, two)
        self.assertEqual(len(self.api.lists), 1)
        self.assertEqual(self.api.watched[-1]["resourceVersion"], "500")
        self.assertEqual(self.failures(router), [])

    def test_a_version_that_is_too_old_makes_a_new_list(self):
        one = self.pod("a")
        router = self.follow()
        self.wait_used(router, one)
        for way in ("event", "status", "open"):
            self.api.gone_as = way
            lists = len(self.api.lists)
            wait_for(lambda: self.api.watches, "a watch")
            self.wait_heard(router, self.api.bookmark)  # so it is a good watch
            if way == "open":
                self.api.expire()
            else:
                self.api.cut()
            with self.api.lock:
                self.api.delete(one.slice)
                one = self.pod(way)
                self.api.forget()
            self.wait_used(router, one)
            self.assertGreater(len(self.api.lists), lists)
        self.assertEqual(self.failures(router), [])

    def test_replicas_stay_while_the_api_server_is_away(self):
        one = self.pod("a")
        router = self.follow()
        self.wait_used(router, one)
        self.api.stop()
        wait_for(lambda: self.failures(router), "it says so")
        two = self.pod("b")
        wait_for(lambda: router.metric("discovery_failures_total") >= 3, "it asks again and again")
        self.assertEqual(self.in_use(router), [one.name])  # the old list holds
        self.assertEqual(self.ask(router).status, 200)
        self.api.start()
        self.wait_used(router, one, two)

    def test_a_hung_api_server_is_reported(self):
        self.api.hangs = True
        router = self.follow()
        wait_for(lambda: self.failures(router), "it says so", limit=40)
        self.assertEqual(self.failures(router)[0], "the API server does not answer")
        self.api.hangs = False
        self.wait_used(router, self.pod("a"))

    def test_a_changed_token_is_used(self):
        one = self.pod("a")
        router = self.follow()
        self.wait_used(router, one)
        self.api.tokens = {"token-1"}
        self.api.cut()
        wait_for(lambda: any("401: the API server does not accept the token" in why
                             for why in self.failures(router)), "401")
        self.account.rotate("token-1\n")
        two = self.pod("b")
        self.wait_used(router, one, two)
        self.assertFalse(any("token-" in line for line in router.lines))

    def test_a_forbidden_request_is_reported(self):
        self.api.forbidden = True
        one = self.pod("a")
        router = self.follow()
        wait_for(lambda: self.failures(router), "403")
        self.assertIn("403: a Role with list and watch of endpointslices is missing",
                      self.failures(router)[0])
        self.assertIn("system:serviceaccount:inference:default", self.failures(router)[0])
        self.api.forbidden = False
        self.wait_used(router, one)

    def test_too_many_requests(self):
        self.api.busy = 2
        self.wait_used(self.follow(), self.pod("a"))

    def test_a_renewed_ca_is_used(self):
        one = self.pod("a")
        other = Account(tempfile.mkdtemp(dir=self.folder))
        router = self.follow(account=other)
        wait_for(lambda: self.failures(router), "the certificate")
        self.assertIn("certificate", self.failures(router)[0])
        self.assertIn("by ca.crt", self.failures(router)[0])
        self.assertEqual(self.api.lists, [])
        self.assertEqual(router.admin("GET", "/readyz").status, 503)
        # The CA is renewed, with the router running.
        with open(self.account.path("ca.crt")) as f:
            right = f.read()
        with open(other.path("ca.crt"), "w") as f:
            f.write(right)
        self.wait_used(router, one)

    def test_the_router_exits_during_a_request(self):
        self.api.hangs = True
        self.follow().stop()
        self.api.hangs = False
        router = self.follow()
        wait_for(lambda: self.api.watches, "a watch")
        router.stop()

    def test_the_start_fails_outside_of_a_pod(self):
        process = Process([binary("grapevine"), "--replica-kubernetes", "ns/vllm"],
                          env={"KUBERNETES_SERVICE_HOST": ""})
        self.assertEqual(process.wait(), 1)
        self.assertIn("KUBERNETES_SERVICE_HOST is not set", process.lines[-1])
