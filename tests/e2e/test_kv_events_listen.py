"""KV-cache events of engines that connect: the replica that they belong to, and the router that reads them."""

import socket
import threading
import unittest

from lib import HOST, closed_port, wait_for
from lib_cluster import Clustered, Talk

SPEED = ("--speed-up", "5")


def of(router, name, replica):
    return router.metrics().get('grapevine_replica_events_%s{replica="%s"}' % (name, replica), 0)


def publishers(router, *states):
    return sum(router.metrics()['grapevine_events_publishers{state="%s"}' % s] for s in states or ("ready", "read"))


def dropped(router, reason):
    return router.metrics()['grapevine_events_publishers_dropped_total{reason="%s"}' % reason]


class Service:
    """One address in front of several ports, as a Service of Kubernetes: a connection goes to the current port."""

    def __init__(self, port):
        self.port, self.open = port, []
        self.socket = socket.create_server((HOST, 0))
        self.url = "tcp://%s:%d" % self.socket.getsockname()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.socket.accept()
            except OSError:
                return
            try:
                far = socket.create_connection((HOST, self.port))
            except OSError:
                near.close()
                continue
            self.open += [near, far]
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(a, b), daemon=True).start()

    @staticmethod
    def _pump(source, to):
        try:
            while data := source.recv(65536):
                to.sendall(data)
        except OSError:
            pass
        for s in (source, to):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def move(self, port):
        self.port, ends, self.open = port, self.open, []
        for s in ends:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def stop(self):
        self.socket.close()
        self.move(0)


class Listen(Clustered):
    def publisher(self, to, *args, port=0):
        url = to if isinstance(to, str) else "tcp://%s:%d" % (HOST, to)
        return self.sim(*SPEED, "--kv-events", "vllm-0.25", "--kv-events-connect", url, *args, port=port)

    def listener(self, port, replicas, *args, **how):
        return self.router(replicas, "--kv-events-listen", "%s:%d" % (HOST, port), *args, **how)

    def wait_read(self, router, replica):
        wait_for(lambda: of(router, "read", replica) == 1 and of(router, "blocks", replica) > 0, "blocks of " + replica)

    def test_feeds_are_matched_by_topic(self):
        port, http = closed_port(), closed_port()
        sims = [self.publisher(port, "--kv-topic", "kv@a", port=http), self.publisher(port, "--kv-topic", "kv@b")]
        r = self.listener(port, ["%s#kv-events=listen?topic=kv@%s" % (s.url, t) for s, t in zip(sims, "ab")])
        wait_for(lambda: publishers(r) == 2, "both connect")
        a = sims[0]
        seed = 1
        while not all(of(r, "read", s.name) for s in sims):
            Talk(self, seed).ask(r)
            seed += 1
        for s in sims:
            self.wait_read(r, s.name)
            self.assertEqual((of(r, "speaks", s.name), of(r, "whole", s.name), of(r, "gaps_total", s.name)), (1, 1, 0))
        said = r.wait_event("kv_events_live")
        self.assertEqual((said["replica"] in [s.name for s in sims], said["from"]), (True, HOST))
        a.kill()
        wait_for(lambda: publishers(r) == 1, "it is gone")
        wait_for(lambda: of(r, "read", a.name) == 0, "and is not read")
        a = self.publisher(port, "--kv-topic", "kv@a", port=http)
        wait_for(lambda: publishers(r) == 2, "it is back")
        r.wait_up(2)
        while not of(r, "read", a.name):
            Talk(self, seed).ask(r)
            seed += 1
        self.wait_read(r, a.name)
        self.assertEqual((of(r, "whole", a.name), r.metric("events_feeds")), (1, 2))

    def test_a_feed_is_matched_by_address_and_replayed(self):
        port, again = closed_port(), closed_port()
        sim = self.publisher(port, "--kv-replay-port", str(again), "--block-tokens", "16")
        Talk(self, 2).ask(self.router([sim.url]))  # without a listener
        r = self.listener(port, [sim.url + "#kv-events=listen?replay=%d" % again])
        wait_for(lambda: publishers(r) == 1, "it connects")
        Talk(self, 3).ask(r)
        self.wait_read(r, sim.name)
        wait_for(lambda: of(r, "whole", sim.name) == 1, "what was before")
        self.assertEqual(of(r, "missed_total", sim.name), 0)
        plain = self.listener(closed_port(), [sim.url])  # its address alone, but it is connected elsewhere
        Talk(self, 4).ask(plain)
        self.assertEqual((publishers(plain), plain.metric("events_feeds")), (0, 0))
        sim.call("POST", "/sim/kv", {"cut": True})
        wait_for(lambda: r.metric("events_publishers_accepted_total") == 2, "it connects again")
        Talk(self, 5).ask(r)
        wait_for(lambda: of(r, "read", sim.name) == 1, "it is read on")
        self.assertEqual((of(r, "missed_total", sim.name), of(r, "connects_total", sim.name)), (0, 2))

    def test_an_unknown_topic_is_reported(self):
        port = closed_port()
        sim = self.publisher(port, "--kv-topic", "kv@a")
        r = self.listener(port, [sim.url + "#kv-events=listen?topic=kv@b"])
        wait_for(lambda: publishers(r) == 1, "it connects")
        talk = Talk(self, 6)
        wait_for(lambda: talk.ask(r) or dropped(r, "topic") > 1, "messages")
        said = r.wait_event("kv_events_dropped")
        self.assertEqual((said["level"], said["from"], said["topic"], said["reason"]),
                         ("warn", HOST, "kv@a", "no replica has this topic"))
        self.assertIn("kv-events=listen?topic=TEXT", said["want"])
        self.assertEqual(len(r.events("kv_events_dropped")), 1)
        self.assertEqual((r.metric("events_feeds"), of(r, "read", sim.name)), (0, 0))
        texts = [e["text"] for e in r.admin("GET", "/events").json["events"]]
        self.assertTrue(any("from 127.0.0.1 with topic kv@a are dropped: no replica has this topic" in t for t in texts), texts)

    def test_two_replicas_at_one_address_are_not_matched(self):
        port = closed_port()
        sim, other = self.publisher(port), self.sim(*SPEED)
        r = self.listener(port, [sim.url, other.url])
        wait_for(lambda: publishers(r) == 1, "it connects")
        seed = 7
        while not dropped(r, "several"):
            Talk(self, seed).ask(r)
            seed += 1
        self.assertEqual(r.wait_event("kv_events_dropped")["reason"], "several replicas match")
        self.assertEqual(r.metric("events_feeds"), 0)

    def test_another_router_gets_the_connection(self):
        ports = [closed_port(), closed_port()]
        service = self.keep(Service(ports[0]))
        sim = self.publisher(service.url)
        nodes = []
        for i, port in enumerate(ports):
            nodes.append(self.node("r%d" % i, [sim], "--kv-events-listen", "%s:%d" % (HOST, port),
                                   join=nodes[0] if nodes else None))
        one, two = nodes

        def roles():
            return [(of(r, "speaks", sim.name), of(r, "read", sim.name)) for r in nodes]
        wait_for(lambda: publishers(one) == 1, "it connects")
        talk = Talk(self, 8)
        talk.ask(two)
        wait_for(lambda: roles() == [(1, 1), (0, 0)], "the router that has it speaks")
        wait_for(lambda: all(of(r, "live", sim.name) == 1 for r in nodes), "all know it")
        self.assertEqual(of(one, "whole", sim.name), 1)
        service.move(ports[1])
        wait_for(lambda: publishers(two) == 1, "it connects to the other one")
        wait_for(lambda: all(of(r, "live", sim.name) == 0 for r in nodes), "nobody reads")
        talk.ask(one)
        wait_for(lambda: roles() == [(0, 0), (1, 1)], "the other one speaks")
        wait_for(lambda: all(of(r, "live", sim.name) == 1 for r in nodes), "all know it")
        self.assertEqual((of(two, "whole", sim.name), of(two, "missed_total", sim.name)), (0, 1))  # doubt
        service.move(ports[0])
        wait_for(lambda: publishers(one) == 1, "it comes back")
        talk.ask(one)
        wait_for(lambda: roles() == [(1, 1), (0, 0)], "the first one speaks again")


if __name__ == "__main__":
    unittest.main()
