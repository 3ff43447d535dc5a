"""An update as Kubernetes makes it with maxSurge 1 and maxUnavailable 0 (the chart's): a router with another name is
ready before an old one is asked to end. Behind HAProxy in TCP mode, under load; clients never retry."""

import json
import unittest

import test_drain_haproxy as drain
from lib import Client, Cut, wait_for
from lib_cluster import gvctl


class Surge(drain.RollingRestart):
    def balance(self):
        """The balancer also lists the new routers, which do not run yet."""
        self.fresh = [drain.Restarted(self.fleet, "new%d" % (i + 1), n.gossip) for i, n in enumerate(self.nodes)]
        for old, new in zip(self.nodes, self.fresh):
            old.restart = lambda old=old, new=new: self.replace(old, new)
            old.now = new.name
        old = self.nodes
        self.nodes = old + self.fresh
        super().balance()
        self.nodes = old
        good = [0]

        def asked_well():
            c = Client(self.port)
            try:
                good[0] = good[0] + 1 if c.ask("GET", "/health").status == 200 else 0
            except (Cut, OSError):
                good[0] = 0
            finally:
                c.close()
            return good[0] == 12
        wait_for(asked_well, "the balancer knows who is not there", step=0.02)

    def replace(self, old, new):
        new.start()
        self.addCleanup(new.router.stop)
        new.ready()
        old.router.signal(15)
        return old.router.wait(30)

    def test_no_client_notices_a_rolling_restart(self):
        super().test_no_client_notices_a_rolling_restart()
        for n in self.fresh:
            wait_for(lambda: gvctl("convergence", "--members", "3", admin=n.admin)[0] == 0, n.name + " holds the same")
        members = json.loads(gvctl("members", "--json", admin=self.fresh[0].admin)[1])["members"]
        self.assertEqual({m["name"]: m["state"] for m in members},
                         {**{n.name: "left" for n in self.nodes}, **{n.name: "alive" for n in self.fresh}})


if __name__ == "__main__":
    unittest.main()
