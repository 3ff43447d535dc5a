"""Several routers of one host on one client port (reuse-port)."""

import signal
import unittest

from lib import HOST, Case, Client, closed_port, wait_for


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

    def test_both_serve_and_one_may_stop(self):
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

    def test_only_with_the_setting(self):
        port = closed_port()
        self.start(port=port)
        with self.assertRaisesRegex(AssertionError, "address already in use"):
            self.router([self.one], "--listen", "%s:%d" % (HOST, port))


if __name__ == "__main__":
    unittest.main()
