"""A stopping router still gets connections from load balancers that have not noticed: it is unready at once, and closes
its port only `drain-delay` later."""

import itertools
import select
import signal
import socket
import threading
import unittest

from lib import (HOST, LIMIT, SSE_HEAD, Case, Client, Cut, answer, chunk, closed_port, request,
                 wait_for)
from lib_cluster import Clustered
from test_engines import CHAT, FAST, message, words

LONG = ("--drain-delay", "1h")
BODY = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'


def refuses(port):
    try:
        Client(port).close()
        return False
    except (ConnectionRefusedError, ConnectionResetError):
        return True


class Delay(Case):
    def setUp(self):
        super().setUp()
        self.e = self.engine()
        self.e.replies(answer(200, b"served"))

    def draining(self, *args):
        r = self.router([self.e], *args)
        self.used = [self.client(r) for _ in range(2)]
        for c in self.used:
            self.assertEqual(c.ask("POST", CHAT, BODY).get("connection"), None)
        r.signal(signal.SIGTERM)
        r.wait_event("draining")
        return r

    def test_a_router_in_its_drain_delay_is_unready_but_serves(self):
        r = self.draining(*LONG)
        self.assertEqual(r.admin("GET", "/readyz").status, 503)
        self.assertEqual(r.get("/health").status, 503)
        self.assertEqual(r.metric("draining"), 1)
        self.assertEqual(r.events("draining")[0]["delay_ms"], 3600000)
        for c in (self.used[0], self.client(r)):  # kept alive, and new
            got = c.ask("POST", CHAT, BODY)
            self.assertEqual((got.status, got.body, got.get("connection")),
                             (200, b"served", "close"))
            self.assertTrue(c.is_closed())
        self.assertTrue(self.used[1].is_open())
        self.assertEqual(r.events("client_port_closed"), [])
        r.signal(signal.SIGTERM)

    def test_after_the_delay_the_port_and_idle_connections_close(self):
        r = self.draining("--drain-delay", "1500ms")
        late = self.client(r)
        late.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n")
        self.assertTrue(self.used[0].is_open())
        for c in self.used:
            self.assertTrue(c.is_closed())
        wait_for(lambda: refuses(r.port), "new connections refused")
        late.send(b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY)
        self.assertEqual(late.read().body, b"served")
        self.assertEqual(r.wait(), 0)
        self.assertEqual(r.events("client_port_closed")[0]["requests_open"], 0)

    def test_a_second_signal_ends_the_delay(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            r = self.draining(*LONG)
            r.signal(number)
            self.assertEqual(r.wait(), 0)

    def test_sigint_skips_the_delay(self):
        r = self.router([self.e], *LONG)
        r.signal(signal.SIGINT)
        self.assertEqual(r.wait(), 0)
        self.assertEqual(r.events("draining")[0]["delay_ms"], 0)

    def test_drain_timeout_begins_after_the_delay(self):
        go = threading.Event()
        self.addCleanup(go.set)

        def handler(asked):
            asked.read_body()
            go.wait(LIMIT)
            asked.send(answer(200, b"late"))
        r = self.draining("--drain-delay", "1500ms", "--drain-timeout", "300ms")
        self.e.handler = handler
        c = self.client(r)
        c.send(request("POST", CHAT, BODY))
        closed = r.wait_event("client_port_closed")
        self.assertEqual(closed["requests_open"], 1)
        r.expected = r.wait()
        self.assertEqual(r.expected, 1)
        self.assertEqual(r.events("drain_timeout")[0]["requests_cut"], 1)


class Balancer:
    """Layer 4: asks each router every `interval` seconds whether it is ready, and gives each connection to the next
    ready router. It tries no second router."""

    def __init__(self, places, interval):
        self.places = places  # [(client port, admin port)]
        self.ready = [False] * len(places)
        self.given = [0] * len(places)
        self.refused = []
        self.interval = interval
        self.turn = itertools.count()
        self.stopping = threading.Event()
        self.listener = socket.socket()
        self.listener.bind((HOST, 0))
        self.listener.listen(512)
        self.port = self.listener.getsockname()[1]
        for i in range(len(places)):
            threading.Thread(target=self.check, args=(i,), daemon=True).start()
        threading.Thread(target=self.accept, daemon=True).start()

    def check(self, i):
        while not self.stopping.is_set():
            try:
                c = Client(self.places[i][1])
                try:
                    got = c.ask("GET", "/readyz", headers=[("Host", HOST)]).status == 200
                finally:
                    c.close()
            except (OSError, Cut):
                got = False
            self.ready[i] = got
            self.stopping.wait(self.interval)

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.give, args=(client,), daemon=True).start()

    def give(self, client):
        ready = [i for i, is_ready in enumerate(self.ready) if is_ready]
        i = ready[next(self.turn) % len(ready)]
        router = socket.socket()
        try:
            router.connect((HOST, self.places[i][0]))
            self.given[i] += 1
            other = {client: router, router: client}
            while True:
                for s in select.select(list(other), [], [])[0]:
                    data = s.recv(65536)
                    if not data:
                        return
                    other[s].sendall(data)
        except ConnectionRefusedError as e:
            self.refused.append((i, e))
        except OSError:
            pass  # the client sees it as a failure
        finally:
            router.close()
            client.close()

    def stop(self):
        self.stopping.set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Arrivals:
    """Clients that open a new connection every so often."""

    def __init__(self, port, count, pause):
        self.port, self.pause = port, pause
        self.done, self.failed = [0] * count, []
        self.ending = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(i,), daemon=True)
                        for i in range(count)]
        for t in self.threads:
            t.start()

    def run(self, number):
        while not self.ending.wait(self.pause):
            try:
                c = Client(self.port)
                try:
                    got = c.post(CHAT, {"model": "sim", "max_tokens": 4, "messages": [
                        message("user", words("c%d" % number, 50) + str(self.done[number]))]})
                finally:
                    c.close()
                if got.status != 200:
                    self.failed.append(got)
            except (OSError, Cut) as e:
                self.failed.append(e)
            self.done[number] += 1

    def stop(self):
        self.ending.set()
        for t in self.threads:
            t.join()


class RollingRestart(Clustered):
    def test_behind_a_load_balancer_no_request_is_refused(self):
        """The balancer checks readiness five times within the delay, because a busy machine may miss some checks."""
        sims = [self.sim(*FAST) for _ in range(2)]
        places = [(closed_port(), closed_port()) for _ in range(3)]
        seeds = [closed_port() for _ in range(3)]
        joins = [a for port in seeds for a in ("--join", "%s:%d" % (HOST, port))]

        def begin(i):
            return self.node("r%d" % (i + 1), sims, "--listen", "%s:%d" % (HOST, places[i][0]),
                             "--admin-listen", "%s:%d" % (HOST, places[i][1]), *joins,
                             "--drain-delay", "2s", listen="%s:%d" % (HOST, seeds[i]))
        nodes = [begin(i) for i in range(3)]
        balancer = Balancer(places, 0.4)
        self.addCleanup(balancer.stop)
        wait_for(lambda: all(balancer.ready), "the balancer")
        load = Arrivals(balancer.port, 4, 0.02)
        try:
            for i in range(3):
                given = balancer.given[i]
                wait_for(lambda: balancer.given[i] > given + 10, "requests at each")
                nodes[i].signal(signal.SIGTERM)
                self.assertEqual(nodes[i].wait(), 0)
                nodes[i].stop()
                nodes[i] = begin(i)
                wait_for(lambda: all(balancer.ready), "the balancer")
        finally:
            load.stop()
        self.assertEqual((balancer.refused, load.failed), ([], []))
        self.assertGreater(sum(load.done), 100)

    def test_other_routers_count_the_load_of_a_draining_router(self):
        e, go = self.engine(), threading.Event()
        self.addCleanup(go.set)

        def handler(asked):
            asked.read_body()
            asked.send(SSE_HEAD + chunk(b'data: {"text":"1"}\n\n'))
            go.wait(LIMIT)
            asked.send(b"0\r\n\r\n")
        e.handler = handler
        nodes = self.cluster(2, [e], *LONG)
        c = self.client(nodes[1])
        c.send(request("POST", CHAT, BODY))
        c.head()

        def load_of_others():
            return sum(x["load"]["requests_of_others"]
                       for x in nodes[0].admin("GET", "/replicas").json)
        wait_for(lambda: load_of_others() == 1, "the load")
        for event in ("draining", "client_port_closed"):
            nodes[1].signal(signal.SIGTERM)
            nodes[1].wait_event(event)
            self.assertEqual((load_of_others(), nodes[0].events("member_left")), (1, []))
        go.set()
        self.assertEqual(nodes[1].wait(), 0)
        nodes[0].wait_event("member_left")
        wait_for(lambda: load_of_others() == 0, "no load")
        nodes[0].signal(signal.SIGTERM)


if __name__ == "__main__":
    unittest.main()
