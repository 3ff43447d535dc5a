"""Several routers of one host on one client port (reuse-port)."""

import os
import signal
import tempfile
import threading
import unittest

from lib import HOST, Case, Client, closed_port, compile_c, wait_for


class ReusePort(Case):
    def start(self, *args, port, **how):
        return self.router([self.one], "--listen", "%s:%d" % (HOST, port), "--reuse-port", "on", "--drain-delay", "2s",
                           *args, **how)

    def setUp(self):
        super().setUp()
        self.one = self.engine()

    def served(self, router):
        return router.metrics()['grapevine_replica_chosen_total{replica="%s"}' % self.one.name]

    def ask(self, port):
        """On a connection of its own."""
        c = Client(port)
        try:
            return c.ask("POST", "/v1/chat/completions", b'{"model":"m","messages":[]}').status
        finally:
            c.close()

    def test_both_routers_serve_and_one_may_stop(self):
        port = closed_port()
        first, second = self.start(port=port), self.start(port=port)

        def both():
            self.assertEqual(self.ask(port), 200)
            return self.served(first) and self.served(second)
        wait_for(both, "each is dealt connections")
        first.signal(signal.SIGTERM)
        count = 0
        while first.running():
            self.assertEqual(self.ask(port), 200)
            count += 1
        self.assertGreater(count, 10)
        self.assertEqual(first.wait(), 0)
        self.assertEqual({self.ask(port) for _ in range(10)}, {200})

    def test_no_connection_is_reset_when_a_router_stops(self):
        """Before, connections made between the last accept and the port's close were lost, in one stop of a hundred."""
        port = closed_port()
        stays = self.start(port=port)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        shim = compile_c(os.path.join(folder.name, "slow_close.so"), "-shared", "-fPIC", "-O2",
                         "tests/lib/faults/slow_close.c")
        stops = self.start("--drain-delay", "0s", port=port, env={
            "LD_PRELOAD": shim, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"})
        gone = threading.Event()
        errors, served = [], []

        def asks():
            while not gone.is_set():
                try:
                    served.append(self.ask(port))
                except OSError as e:
                    errors.append(repr(e))
        clients = [threading.Thread(target=asks) for _ in range(8)]
        for c in clients:
            c.start()
        try:
            wait_for(lambda: self.served(stops), "it is dealt connections")
            stops.signal(signal.SIGTERM)
            self.assertEqual(stops.wait(), 0)
        finally:
            gone.set()
            for c in clients:
                c.join()
        self.assertEqual(errors, [])
        self.assertEqual(set(served), {200})
        self.assertTrue(stays.running())

    def test_sharing_a_port_needs_the_setting(self):
        port = closed_port()
        self.start(port=port)
        with self.assertRaisesRegex(AssertionError, "address already in use"):
            self.router([self.one], "--listen", "%s:%d" % (HOST, port))


if __name__ == "__main__":
    unittest.main()
