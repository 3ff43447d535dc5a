"""Names of replicas and their limit; addresses of routers."""
import json
import os
import shutil
import socket
import tempfile

from lib import HOST, closed_port, quiet_for, wait_for
from lib_cluster import Clustered, gvctl, run_grapevine
from test_engines import FAST


class Addresses(Clustered):
    """Settings with an address that this machine lacks, or that no peer can use."""

    def start(self, *args):
        status, err = run_grapevine("--replica", "http://127.0.0.1:1", "--cluster-key-file", self.key, *args)
        self.assertEqual(status, 1, err)
        return [json.loads(line) for line in err.splitlines()]

    def said(self, events, name, setting):
        told = [e for e in events if e["event"] == name]
        self.assertEqual([e["setting"] for e in told], [setting], events)
        return told[0]

    def test_a_gossip_port_in_use_is_reported(self):
        with socket.socket(type=socket.SOCK_DGRAM) as taken:
            taken.bind((HOST, 0))
            port = taken.getsockname()[1]
            said = self.said(self.start("--gossip-listen", "%s:%d" % (HOST, port)), "listen_failed", "gossip-listen")
        self.assertEqual((said["port"], said["error"]), (port, "address already in use"))

    def test_a_seed_that_the_gossip_socket_cannot_reach_is_reported(self):
        r = self.node("r1", [self.engine()], join="[::1]:7", ready=False)
        self.assertIn("listen to [::]", r.wait_event("join_unresolved")["error"])


class Names(Clustered):
    def test_a_replica_beyond_replicas_max_waits(self):
        sims = [self.sim(*FAST) for _ in range(3)]
        nodes = self.cluster(2, sims[:1], "--replicas-max", "2", "--generation", "1s")

        def names(r):
            return sorted(x["name"] for x in r.admin("GET", "/replicas").json)

        def change(command, sim, r):
            status, out, err = gvctl(command, sim.name, admin=r.admin_port)
            self.assertEqual(status, 0, err)
            return out

        def figure(r, name):
            return r.metrics()["grapevine_replica_names" + name]
        change("add", sims[1], nodes[0])
        for r in nodes:
            wait_for(lambda: len(names(r)) == 2, "two replicas")
        for r in nodes:
            wait_for(lambda: all(x["health"] == "up" for x in r.admin("GET", "/replicas").json), "both are up")
        quiet_for(1.5, "once a second a router notes what is up, which has room before what it was told; nothing shows that")
        self.assertIn("not used yet", change("add", sims[2], nodes[1]))
        for r in nodes:
            wait_for(lambda: (figure(r, ""), figure(r, "_waiting"), figure(r, "_max")) == (2, 1, 2),
                     "it counts, and the other waits")
        wait_for(lambda: [e["waits"] for e in nodes[0].events("replicas_full")] == [sims[2].name],
                 "it is logged")
        # A removed name gives its place to a waiting one.
        change("remove", sims[1], nodes[0])
        for r in nodes:
            wait_for(lambda: names(r) == sorted([sims[0].name, sims[2].name]), "it is removed, and the other is in")
        self.converge(nodes[0], 2)

    def test_a_router_with_more_replicas_than_replicas_max_runs(self):
        path = os.path.join(tempfile.mkdtemp(), "replicas")
        self.addCleanup(shutil.rmtree, os.path.dirname(path))
        # With this number of names, the two listed first are hardly ever the two whose keys come first.
        port = closed_port()
        names = ["127.0.0.%d:%d" % (i, port) for i in range(1, 151)]
        with open(path, "w") as f:
            f.writelines("http://%s\n" % name for name in names)
        r = self.router([], "--replica-file", path, "--replicas-max", "2")
        # Before the first probe, names were in use and were then removed for others.
        removed = {e["replica"] for e in r.events("replica_removed")}
        self.assertTrue(removed, "all came in the order of their keys")
        for n in (1, 4, 8):  # health checks that failed
            wait_for(lambda: r.metric("replica_probe_failures_total") >= n, "it asks them")
            self.assertEqual(len(r.admin("GET", "/replicas").json), 2)
        # The log names the limit, a replica that waits, and the reason.
        full = r.wait_event("replicas_full")
        self.assertEqual(full["limit"], 2)
        self.assertIn(full["waits"], names)
        refused = r.events("replica_refused")
        self.assertEqual({e["error"] for e in refused if "suppressed" not in e}, {"replicas-max (2) is reached"})
