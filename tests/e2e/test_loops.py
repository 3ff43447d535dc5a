"""A replica must be an engine. A router in an engine's place is detected and gets no request; a request that loops
all the same ends there."""

import json
import socket
import subprocess
import threading

from lib import HOST, LIMIT, Case, Client, Engine, answer, answer_json, binary, closed_port, wait_for
from lib_dns import Dns
from lib_cluster import Clustered, gvctl

CHAT = "/v1/chat/completions"
ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


class Wire:
    """A port that forwards connections to another port, so that the router behind it is not recognised."""

    def __init__(self, target=None):
        self.target = target
        self.socks = []
        self.listener = socket.socket()
        self.listener.bind((HOST, 0))
        self.listener.listen(64)
        self.name = "%s:%d" % (HOST, self.listener.getsockname()[1])
        self.url = "http://" + self.name
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                ours, _ = self.listener.accept()
            except OSError:
                return
            self.socks.append(ours)
            try:
                theirs = socket.create_connection((HOST, self.target))
            except OSError:
                ours.close()
                continue
            self.socks.append(theirs)
            for pair in ((ours, theirs), (theirs, ours)):
                threading.Thread(target=self._pump, args=pair, daemon=True).start()

    @staticmethod
    def _pump(source, to):
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    to.shutdown(socket.SHUT_WR)
                    return
                to.sendall(data)
        except OSError:
            for s in (source, to):
                s.close()

    def stop(self):
        for s in [self.listener] + self.socks:
            s.close()


class Balancer(Engine):
    """A proxy in front of routers with its own checks of health and models: to the router that probes it, it is an
    engine. Requests are forwarded."""

    def __init__(self):
        super().__init__()
        self.target = None
        self.handler = self.hand_on

    def hand_on(self, asked):
        body = asked.read_body()
        c = Client(self.target)
        try:
            got = c.send(asked.raw + body).read(asked.method)
        finally:
            c.close()
        asked.send(answer(got.status, got.body, [("Content-Type", "application/json")]))


class Found(Case):
    """Probes detect the router before its first request."""

    def replica(self, r, name):
        return [x for x in r.admin("GET", "/replicas").json if x["name"] == name][0]

    def test_the_routers_own_address_as_a_replica_stops_the_start(self):
        for listen, admin, replica, word in (
                ("0.0.0.0:8080", "127.0.0.1:0", "http://localhost:8080", "(listen)"),
                ("127.0.0.1:8080", "127.0.0.1:0", "http://127.0.0.1:8080", "(listen)"),
                ("[::]:8080", "127.0.0.1:0", "http://[::1]:8080", "(listen)"),
                ("127.0.0.1:0", "0.0.0.0:9090", "http://127.0.0.1:9090", "(admin-listen)")):
            for more in ((), ("--check-config",)):
                p = subprocess.run([binary("grapevine"), "--listen", listen, "--admin-listen",
                                    admin, "--replica", replica, *more], capture_output=True,
                                   timeout=LIMIT)
                err = p.stderr.decode()
                self.assertEqual(p.returncode, 2, err)
                for text in (replica, word, "an engine"):
                    self.assertIn(text, err)

    def test_two_routers_as_each_others_replicas_are_detected(self):
        port = closed_port()
        engine = self.engine()
        one = self.router(["http://%s:%d" % (HOST, port)])
        two = self.router(["http://%s:%d" % (HOST, one.port), engine.url], "--listen",
                          "%s:%d" % (HOST, port))
        for r, name in ((one, "%s:%d" % (HOST, port)), (two, "%s:%d" % (HOST, one.port))):
            event = r.wait_event("replica_is_router")
            self.assertEqual((event["level"], event["replica"]), ("error", name))
            self.assertRegex(event["router"], "^grapevine-[0-9a-f]{16}$")
            self.assertEqual(self.replica(r, name)["health"], "router")
            series = r.metrics()
            self.assertEqual(series['grapevine_replica_up{replica="%s"}' % name], 0)
            self.assertEqual(series['grapevine_replica_health{replica="%s",state="router"}' % name],
                             1)
            _, out, _ = gvctl("replicas", admin=r.admin_port)
            self.assertIn("%s is a Grapevine router (grapevine-" % name, out)
        # The first router has no other replica, so it is not ready; the second goes on with its engine.
        self.assertEqual(one.admin("GET", "/readyz").status, 503)
        self.assertEqual(self.client(one).post(CHAT, ASK).status, 503)
        two.wait_event("replica_up")
        for _ in range(4):
            self.assertEqual(self.client(two).post(CHAT, ASK).status, 200)
        self.assertEqual(len(engine.requests), 4)
        explained = two.admin("POST", "/explain", json.dumps(ASK).encode()).json
        self.assertEqual([x["why"] for x in explained["left_out"]],
                         ["a Grapevine router, not an engine"])
        # An engine in the place of the router is an engine.
        two.stop()
        self.keep(Engine(port=port))
        one.wait_event("replica_up")
        self.assertEqual(self.client(one).post(CHAT, ASK).status, 200)
        self.assertNotIn("router", self.replica(one, "%s:%d" % (HOST, port)))
        self.assertEqual(len(one.events("replica_is_router")), 1)

    def test_a_router_in_an_engines_place_gets_no_clients_key(self):
        """The engine refused to list its models, so clients' keys were shown to it."""
        def refuse(asked):
            asked.send(answer_json({"error": "no"}, 403))
        seen = []
        def circle(asked):
            seen.append(asked.get("authorization"))
            asked.send(answer(403, b"", [("x-grapevine-router", "grapevine-00 zz")]))
        key = [("Authorization", "Bearer clients")]
        engine = self.engine()
        engine.probes["/v1/models"] = refuse
        r = self.router([engine], wait_up=False)
        r.wait_event("replica_refuses_probes")
        self.assertEqual(self.client(r).ask("GET", "/v1/models", headers=key).status, 403)
        engine.stop()
        other = Engine(port=engine.port)
        for path in ("/health", "/metrics", "/v1/models", "/server_info"):
            other.probes[path] = circle
        r.wait_event("replica_is_router")
        self.assertEqual(self.replica(r, engine.name)["probes_refused"], [])
        got = self.client(r).ask("GET", "/v1/models", headers=key)
        self.assertEqual(got.status, 503)  # none is listed
        self.assertEqual(set(seen), {None})
        # The next engine at this address refuses too, and is reported anew.
        other.stop()
        engine = self.keep(Engine(port=engine.port))
        engine.probes["/v1/models"] = refuse
        r.wait_event("replica_refuses_probes", 2)
        self.assertEqual(r.events("replica_takes_probes"), [])

    def test_a_router_as_its_own_replica_under_another_name_is_detected(self):
        wire = Wire()
        self.addCleanup(wire.stop)
        r = self.router([], "--replica", wire.url, wait_up=False)
        wire.target = r.port
        event = r.wait_event("replica_is_router")
        self.assertIn("this router itself", event["router"])
        self.assertEqual(self.client(r).post(CHAT, ASK).status, 503)
        self.assertEqual(r.metric('requests_refused_total{reason="loop"}'), 0)

    def test_an_admin_port_as_a_replica_is_detected(self):
        other = self.router([self.engine()])
        r = self.router(["http://%s:%d" % (HOST, other.admin_port)])
        r.wait_event("replica_is_router")
        self.assertEqual(r.admin("GET", "/readyz").status, 503)

    def test_only_probes_get_the_routers_id(self):
        r = self.router([self.engine()])
        for path in ("/health", "/v1/models"):
            self.assertIsNone(self.client(r).ask("GET", path).get("x-grapevine-router"))
            got = self.client(r).ask("GET", path, headers=[("User-Agent", "grapevine")])
            self.assertRegex(got.get("x-grapevine-router"), "^grapevine-[0-9a-f]{16}$")


class Added(Clustered):
    def names(self, r):
        return {x["name"] for x in r.admin("GET", "/replicas").json}

    def test_a_router_cannot_be_added_as_a_replica(self):
        """Neither a foreign router, nor the called one, nor another member."""
        e = self.engine()
        one, two = self.cluster(2, [e])
        alone = self.router([e])
        for target, who in ((alone.port, "grapevine-"), (two.port, "(r2)"),
                            (one.port, "(r1, this router itself)")):
            name = "%s:%d" % (HOST, target)
            status, out, err = gvctl("add", name, admin=one.admin_port)
            self.assertEqual((status, out), (1, ""))
            for word in (name, "is a Grapevine router", who, "(409)"):
                self.assertIn(word, err)
        wait_for(lambda: len(one.events("replica_refused")) == 3, "each in the log")
        # Later requests reach the other router: none did before.
        later = self.engine()
        self.assertEqual(gvctl("add", later.name, admin=one.admin_port)[0], 0)
        wait_for(lambda: later.name in self.names(two), "the engine at the other router")
        for r in (one, two):
            self.assertEqual(self.names(r), {e.name, later.name})

    def test_a_replica_that_does_not_answer_yet_is_added(self):
        nobody = Dns({})
        self.addCleanup(nobody.stop)
        r = self.router([self.engine()], "--dns-server", nobody.address)
        silent = socket.socket()  # accepts and says nothing
        silent.bind((HOST, 0))
        silent.listen(8)
        self.addCleanup(silent.close)
        for name in ("%s:%d" % (HOST, closed_port()), "no-such-host.test:80",
                     "%s:%d" % (HOST, silent.getsockname()[1])):
            status, out, err = gvctl("add", name, "--json", admin=r.admin_port)
            self.assertEqual((status, err), (0, ""), name)
            self.assertIn(name, self.names(r))
            said = json.loads(out)
            self.assertEqual((said["ok"], said["answers"]), (True, False), name)
            self.assertRegex(said["why"], "refuses|not known|within two seconds")
        engine = self.engine()
        self.assertEqual(json.loads(gvctl("add", engine.name, "--json", admin=r.admin_port)[1]),
                         {"ok": True, "replica": engine.name})

    def test_a_client_that_leaves_before_the_answer_adds_nothing(self):
        r = self.router([self.engine()])
        silent = socket.socket()
        silent.bind((HOST, 0))
        silent.listen(8)
        self.addCleanup(silent.close)
        name = "%s:%d" % (HOST, silent.getsockname()[1])
        c = Client(r.admin_port)
        c.send("POST /replicas?replica=%s HTTP/1.1\r\nHost: %s\r\nContent-Length: 0\r\n\r\n"
               % (name, HOST))
        probe, _ = silent.accept()
        self.addCleanup(probe.close)
        c.close()
        probe.settimeout(LIMIT)
        while probe.recv(4096):  # until the router gives the probe up
            pass
        self.assertNotIn(name, self.names(r))

    def test_a_replica_learned_from_a_peer_is_probed_like_any(self):
        """The second router has the first as a replica, so both routers know this replica."""
        e = self.engine()
        one = self.node("r1", [e])
        name = "%s:%d" % (HOST, one.port)
        two = self.node("r2", [e, "http://" + name], join=one)
        self.assertEqual(one.wait_event("replica_is_router")["router"], "r1, this router itself")
        self.assertEqual(two.wait_event("replica_is_router")["router"], "r1")
        for r in (one, two):
            for _ in range(4):
                self.assertEqual(self.client(r).post(CHAT, ASK).status, 200)
        self.assertEqual(len(e.requests), 8)


class Looping(Case):
    """Loops invisible to probes: a balancer that answers them itself, and leads back."""

    def balanced(self, *args):
        b = self.keep(Balancer())
        return b, self.router([b], "--policy", "round_robin", *args)

    def test_a_request_that_loops_back_is_refused(self):
        b, r = self.balanced()
        b.target = r.port
        got = self.client(r).post(CHAT, ASK)
        self.assertEqual(got.status, 508, got)
        error = got.json["error"]
        self.assertEqual((error["type"], error["code"]), ("LoopDetectedError", 508))
        self.assertRegex(error["message"], "^The request came back to this router. .*only engines as replicas")
        self.assertEqual(len(b.requests), 1)
        self.assertRegex(b.requests[0].get("via"), "^1.1 grapevine-[0-9a-f]{16}$")
        event = r.wait_event("request_loop")
        self.assertEqual((event["level"], event["routers_passed"], event["count"]),
                         ("error", 1, 1))
        self.assertEqual(self.client(r).post("/v1/embeddings", ASK).status, 508)
        self.assertEqual(len(b.requests), 2)
        self.assertEqual(len(r.events("request_loop")), 1)  # at most once a minute
        self.assertEqual(r.metric('requests_refused_total{reason="loop"}'), 2)
        r.quiet()
