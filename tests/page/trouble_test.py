"""Troubles that the page in Chromium and gvctl status name, with the next command; and rolling restarts, which are no
trouble."""

import signal
import unittest

from lib import SLOW, Sim, wait_for
from lib_cluster import gvctl
from lib_page import SOON_S, Load, PageCase

# Keeps each line of the strip that was ever shown.
KEEP = """
window.seen = new Set();
const strip = document.getElementById('attention');
const look = () => [...strip.children].forEach((x) => window.seen.add(x.dataset.severity + ' ' + x.children[2].textContent));
new MutationObserver(look).observe(strip, { childList: true, subtree: true, characterData: true });
"""


class Trouble(PageCase):
    def named(self, text, severity, what, command):
        """The strip says `text` soon, and gvctl status the same."""
        took = self.said(lambda t: text in t, text, "attention")
        self.assert_status(severity, what, command)
        self.assertIn(command, self.text("attention"))
        self.assertLess(took, SOON_S * SLOW)


class Models(Trouble):
    def make(self):
        self.sims = [self.sim() for _ in range(2)] + [self.sim("--model", "rare")]
        self.nodes = self.cluster(3, self.sims)

    def test_a_dead_engine_and_then_a_model_without_engines(self):
        self.open(self.nodes[0])
        self.said(lambda t: t.startswith("All 3 routers agree; all 3 replicas"), "all is well", limit=30)
        self.sims[0].kill()
        self.named("Replica %s is down" % self.sims[0].name, "amber", "replica %s is down" % self.sims[0].name, "gvctl replicas")
        self.sims[2].kill()
        self.named("Model rare has no usable replica", "red", "model rare has no usable replica", "gvctl replicas")
        self.assertIn("hurts clients of rare: they get 503", self.text("attention"))
        self.assertEqual(gvctl("status", "--check", admin=self.nodes[0].admin_port)[0], 1)


class Overload(Trouble):
    def make(self):
        self.sims = [self.sim() for _ in range(2)]
        self.nodes = self.cluster(3, self.sims, "--replica-requests-max", "2", "--queue-max", "4", "--queue-timeout", "30s")

    def test_a_lasting_queue_and_a_full_queue(self):
        self.open(self.nodes[0])
        some = Load(self.nodes[:1], 4)
        self.addCleanup(some.stop)
        for sim in self.sims:
            sim.call("POST", "/sim/fail", {"mode": "slow", "delay_ms": 1500})
        self.said(lambda t: "requests wait: no replica has room" in t, "a queue", "attention")
        self.assert_status("amber", "requests wait: no replica has room", "gvctl queue")
        more = Load(self.nodes, 30)
        self.addCleanup(more.stop)
        self.named("Overload: ", "red", "overload: ", "gvctl queue")

    def test_engines_that_are_all_full(self):
        self.open(self.nodes[0])
        for sim in self.sims:
            sim.call("POST", "/sim/fail", {"mode": "full"})
        self.named("Overload: every replica says that it is full", "red", "overload: every replica says that it is full", "gvctl queue")


class Failures(Trouble):
    def make(self):
        self.sims = [self.sim() for _ in range(2)]
        self.nodes = self.cluster(3, self.sims)

    def test_clients_that_get_5xx(self):
        self.open(self.nodes[0])
        self.well()
        for sim in self.sims:
            sim.call("POST", "/sim/fail", {"mode": "status_500"})
        self.named("requests failed in the last minute at router r1", "red", "requests failed in the last minute at router r1", "gvctl decisions")

    def well(self):
        return self.said(lambda t: t.startswith("All 3 routers agree; all 2 replicas"), "all is well", limit=30)

    def test_clients_with_a_wrong_key(self):
        """Before, nothing reported it: a 401 is the client's own error."""
        self.open(self.nodes[0])
        self.well()
        for sim in self.sims:
            sim.call("POST", "/sim/fail", {"mode": "status_401"})
        self.named("had no key or a wrong one", "amber", "requests had no key or a wrong one in the last minute at router r1", "gvctl key list")


class Restarts(Trouble):
    def make(self):
        self.sims = [self.sim() for _ in range(17)]
        self.nodes = self.cluster(3, self.sims)

    def well(self):
        return self.said(lambda t: t.startswith("All 3 routers agree; all 17 replicas"), "all is well", limit=30)

    def seen(self):
        return sorted(self.d.execute_script("return [...window.seen]"))

    def test_a_rolling_restart_of_engines_is_no_trouble(self):
        self.open(self.nodes[0])
        self.well()
        self.d.execute_script(KEEP)
        one = self.nodes[0]
        for k, sim in enumerate(self.sims):
            self.assertEqual(gvctl("drain", "--wait", sim.name, admin=one.admin_port)[0], 0)
            sim.kill()
            self.sims[k] = self.keep(Sim(port=sim.port))
            one.admin("POST", "/undrain?replica=" + sim.name)
            wait_for(lambda s=sim: all(self.replica(r, s)["health"] == "up" for r in self.nodes), "it is back")
        self.well()
        self.assertEqual([x for x in self.seen() if x.startswith("red")], [])

    def replica(self, router, sim):
        return next(x for x in router.admin("GET", "/replicas").json if x["name"] == sim.name)

    def test_a_rolling_restart_of_routers_is_no_trouble(self):
        self.open(self.nodes[0])
        self.well()
        self.d.execute_script(KEEP)
        for k in (1, 2):
            old = self.nodes[k]
            old.signal(signal.SIGTERM)
            self.assertEqual(old.wait(), 0)
            old.stopped = True
            self.nodes[k] = self.node("r%d" % (k + 1), self.sims, join=self.nodes[0], listen="127.0.0.1:%d" % old.gossip_port)
            self.well()
        self.assertEqual(self.seen(), [])


if __name__ == "__main__":
    unittest.main()
