"""Local ports run out: requests wait for one, no replica is blamed, and operators are informed.

The ports of a whole network namespace are cut down to a dozen, so the tests run in one of their own.
"""

import collections
import json
import os
import subprocess
import sys
import threading
import unittest

from lib import HOST, LIMIT, Case, Client, answer_json, binary
from test_readme import namespace

INSIDE = "TEST_SHORTAGE_INSIDE"
PORTS = 12
REQUESTS = 60


def within(port_count):
    with open("/proc/sys/net/ipv4/ip_local_port_range", "w") as f:
        f.write("40000 %d" % (40000 + port_count - 1))


class Shortage(unittest.TestCase):
    def test_tests_of_ports_pass_in_their_own_network_namespace(self):
        wrap = namespace()
        if not wrap:
            self.skipTest("no network namespace")
        p = subprocess.run(wrap + [sys.executable, os.path.abspath(__file__), "Ports"],
                           env=dict(os.environ, **{INSIDE: "1"}), capture_output=True, text=True,
                           timeout=2 * LIMIT)
        self.assertEqual(p.returncode, 0, p.stderr)


class Ports(Case):
    def serve(self, routers, first_port):
        """Requests, all at once, from ports that are not of the range."""
        answers = collections.Counter()

        def one(i):
            c = Client(routers[i % len(routers)].port, source=(HOST, first_port + i))
            got = c.post("/v1/completions", {"model": "m", "prompt": "p%d" % i})
            answers[got.status, got.get("x-grapevine-reason")] += 1
            c.close()
        threads = [threading.Thread(target=one, args=(i,)) for i in range(REQUESTS)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(answers, {(200, None): REQUESTS}, [r.lines for r in routers])
        for r in routers:
            self.assertEqual(r.events("replica_down"), [])
            self.assertEqual(r.metric("retries_total"), 0)

    def test_requests_wait_for_one_of_twelve_ports(self):
        """Before, 24 of 60 requests got 503, and healthy engines were marked down. One and three routers, engines
        that keep their connections and engines that close them."""
        gate = threading.Event()
        engines = []
        for keeps in (True, True, False):
            def handler(asked, keeps=keeps):
                asked.read_body()
                gate.wait(0.2)
                asked.send(answer_json({"choices": []}))
                if not keeps:
                    asked.close()
            engines.append(self.engine())
            engines[-1].handler = handler
        one = self.router(engines)
        first = self.router(engines, "--gossip-listen", HOST + ":0", "--insecure-gossip")
        three = [first] + [self.router(engines, "--gossip-listen", HOST + ":0", "--insecure-gossip",
                                       "--join", "%s:%d" % (HOST, first.gossip_port)) for _ in range(2)]
        within(PORTS)
        self.serve([one], 20000)
        told = one.wait_event("local_shortage")
        self.assertEqual(told["of"], "ports")
        self.assertIn("ip_local_port_range", told["want"])
        self.assertEqual(one.metric('local_shortage{of="ports"}'), 1)
        within(20000)  # gvctl needs one, too
        said = [subprocess.run([binary("gvctl"), "--admin", "http://%s:%d" % (HOST, one.admin_port),
                                "status"] + form, capture_output=True, text=True, check=True,
                               timeout=LIMIT).stdout for form in ([], ["-o", "json"])]
        self.assertRegex(said[0], r"shortage +no local port is left for .*ip_local_port_range")
        self.assertEqual(list(json.loads(said[1])["local_shortages"].values()), [["ports"]])
        within(PORTS)
        self.serve(three, 21000)

    def test_an_unreachable_address_is_not_a_shortage(self):
        """IPv6 is off here, for which the kernel has the same error. The replica is down."""
        for name in ("all", "default", "lo"):
            with open("/proc/sys/net/ipv6/conf/%s/disable_ipv6" % name, "w") as f:
                f.write("1")
        r = self.router(["http://[::1]:8000"], wait_up=False)
        c = self.client(r)
        self.assertEqual(c.post("/v1/completions", {"model": "m", "prompt": "x"}).status, 503)
        r.wait_event("replica_down")
        self.assertEqual(r.events("local_shortage"), [])


# Each runs where it belongs, and is not there elsewhere.
if INSIDE in os.environ:
    del Shortage
else:
    del Ports

if __name__ == "__main__":
    unittest.main()
