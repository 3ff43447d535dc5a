"""What gvctl status makes of several answers, at scripted admin ports."""

import json
import unittest

from lib import Case, answer, answer_json
from lib_cluster import gvctl


def second(requests=0, cut=0, status_5xx=0, queue_full=0, **more):
    return dict({"requests": requests, "failed": {"cut": cut, "status_5xx": status_5xx, "queue_full": queue_full}}, **more)


def admin_port(engine, name, metrics, members=None, sources=(), figures=None):
    """The calls of that router's admin port that status asks; `figures`: None: an older one, without them."""
    said = {"/readyz": answer_json({"ready": True, "router": name}), "/metrics": answer(200, metrics),
            "/replicas": answer_json([]), "/members": answer_json({"self": name, "members": members}),
            "/sources": answer_json(list(sources)), "/convergence": answer_json({"equal": True, "nodes": {}}),
            "/figures": answer_json({"error": {}}, 404) if figures is None else
            answer_json({"router": name, "figures": figures})}

    def handler(asked):
        asked.send(said[asked.path])
        asked.close()
    engine.handler = handler


class Status(Case):
    def setUp(self):
        super().setUp()
        self.port = self.engine()

    def status(self):
        code, out, err = gvctl("status", "--json", admin=self.port.port)
        self.assertEqual((code, err), (0, ""))
        return json.loads(out)

    def test_all_reasons_of_refusals_add_up(self):
        admin_port(self.port, "r1", b'grapevine_requests_refused_total{reason="memory"} 40\n'
                                    b'grapevine_requests_invalid_total{reason="path"} 7\n'
                                    b'grapevine_requests_refused_total{reason="queue_full"} 2\n')
        self.assertEqual(self.status()["since_start"]["-"]["refused"], 42)

    def words(self):
        code, out, err = gvctl("status", admin=self.port.port)
        self.assertEqual((code, err), (0, ""))
        return out

    def test_what_failed_comes_first(self):
        """Streams that were cut counted as answers with status 200: nothing showed them."""
        admin_port(self.port, "r1", b"x 1\n", figures=[second(requests=40, cut=9), second(requests=60, cut=1, status_5xx=2, queue_full=3,
                                                                client_errors=31, client_gone=4, hidden=7)])
        self.assertIn("\nlast minute  100 requests, 15 failed (10 cut, 2 with a 5xx, 3 for a full queue); 31 client errors, 4 left by their clients, 7 failures hidden by a retry\n", self.words())
        told = self.status()["last_minute"]
        self.assertEqual((told["failed"], told["failed_by_reason"]), (15, {"cut": 10, "status_5xx": 2, "queue_full": 3}))
        self.assertEqual((told["client_errors"], told["client_gone"], told["hidden"]), (31, 4, 7))

    def test_one_is_not_many(self):
        admin_port(self.port, "r1", b"x 1\n", figures=[second(requests=1, client_errors=1, client_gone=1, hidden=1)])
        self.assertIn("\nlast minute  1 request, 0 failed; 1 client error, 1 left by its client, 1 failure hidden by a retry\n", self.words())

    def test_what_was_never_checked_is_not_unknown_for_being_unknown(self):
        admin_port(self.port, "r1", b"x 1\n")
        rest = self.port.handler

        def handler(asked):
            if asked.path != "/replicas":
                return rest(asked)
            asked.send(answer_json([{"name": "a:1", "health": "unknown", "why_text": ""}]))
            asked.close()
        self.port.handler = handler
        self.assertIn(": a:1 (no health check has answered yet)\n", self.words())

    def test_clients_own_errors_are_no_failures(self):
        admin_port(self.port, "r1", b'grapevine_requests_total 9\ngrapevine_requests_failed_total{reason="cut"} 2\n'
                                    b'grapevine_requests_failed_total{reason="status_5xx"} 1\n'
                                    b"grapevine_requests_client_errors_total 5\n", figures=[second(requests=5, client_errors=5)])
        self.assertIn("\nlast minute  5 requests, 0 failed; 5 client errors\n", self.words())
        self.assertEqual(self.status()["since_start"], {"-": {"requests": 9, "refused": 0, "client_errors": 5, "failed": 3}})

    def test_an_older_router_does_not_say_that_none_failed(self):
        admin_port(self.port, "r1", b"grapevine_requests_total 9\n")
        self.assertIn("\nlast minute  not known (an older router)\n", self.words())
        told = self.status()
        self.assertEqual((told["since_start"]["-"]["failed"], told["last_minute"]["routers_counted"]), (None, 0))

    def test_a_replica_that_two_sources_list_is_removed_once(self):
        admin_port(self.port, "r1", b"x 1\n", sources=[{"kind": "settings", "removed": ["a:1", "b:2"]},
                                                       {"kind": "file", "removed": ["a:1"]}])
        self.assertEqual(self.status()["replicas_removed"], ["a:1", "b:2"])

    def test_who_is_called_hears_that_tcp_is_filtered(self):
        """The one that joins calls, and it alone knew: status at the other showed nothing."""
        other = self.engine()
        members = [{"name": "r1", "state": "alive", "self": True, "admin": self.port.name},
                   {"name": "r2", "state": "alive", "self": False, "admin": other.name}]
        admin_port(self.port, "r1", b"grapevine_cluster_members_tcp_filtered 0\n", members)
        admin_port(other, "r2", b"grapevine_cluster_members_tcp_filtered 1\n", members)
        self.assertIn("\nnetwork      TCP from r2 to 1 other router is filtered and UDP is not: open the gossip port for both "
                      "(gvctl --admin http://%s members)\n" % other.name, self.words())

    def test_who_is_asked_by_another_cluster_says_so(self):
        """Only its log did, while status at the one that asks had a guess."""
        other = self.engine()
        members = [{"name": "r1", "state": "alive", "self": True, "admin": self.port.name},
                   {"name": "r2", "state": "alive", "self": False, "admin": other.name}]
        admin_port(self.port, "r1", b"grapevine_cluster_other_asks 0\n", members)
        admin_port(other, "r2", b"grapevine_cluster_other_asks 1\n", members)
        self.assertIn("\nnetwork      a router with this key file and another cluster-name asks r2 to join "
                      "(gvctl --admin http://%s events)\n" % other.name, self.words())

    def test_the_dead_are_not_asked(self):
        """Their address may be somebody else's by now, or hold up the answer for a second."""
        ports = {"r1": self.port, "r2": self.engine(), "r3": self.engine(), "r4": self.engine()}
        states = {"r1": "alive", "r2": "alive", "r3": "dead", "r4": "left"}
        members = [{"name": name, "state": states[name], "self": name == "r1", "admin": port.name}
                   for name, port in ports.items()]
        for name, port in ports.items():
            admin_port(port, name, b"grapevine_requests_total 5\n", members)
        told = self.status()
        self.assertEqual(({n: c["requests"] for n, c in told["since_start"].items()}, told["routers_counted"]),
                         ({"r1": 5, "r2": 5}, 2))
        self.assertEqual((ports["r3"].connections, ports["r4"].connections), (0, 0))


class Top(Case):
    def top(self, before, after):
        """One frame of top, which looks twice."""
        port, looks = self.engine(), []
        admin_port(port, "r1", b"")
        rest = port.handler

        def handler(asked):
            if asked.path != "/metrics":
                return rest(asked)
            looks.append(asked)
            asked.send(answer(200, before if len(looks) == 1 else after))
            asked.close()
        port.handler = handler
        code, out, err = gvctl("top", "--once", admin=port.port)
        self.assertEqual((code, err, len(looks)), (0, "", 2))
        return out

    def test_what_failed_is_a_rate_of_its_own(self):
        metrics = """grapevine_requests_total %d
grapevine_requests_failed_total{reason="cut"} %d
grapevine_requests_failed_total{reason="status_5xx"} 7
grapevine_requests_failed_total{reason="queue_full"} 0
grapevine_requests_client_errors_total %d
"""
        out = self.top((metrics % (100, 10, 0)).encode(), (metrics % (1000, 500, 9)).encode())
        self.assertRegex(out, r"\nfailed [1-9]\d+/s: cut [1-9]\d+/s, 5xx 0\.0/s, queue full 0\.0/s; clients' own errors [1-9][\d.]*/s\n")
        self.assertRegex(out, r"(?m)^  ROUTER +STATE +LAG ms +REQ/s +FAILED/s ")
        self.assertRegex(out, r"(?m)^\* - +alone +- +[1-9]\d+ +[1-9]\d+ ")

    def test_an_older_router_does_not_say_that_none_fails(self):
        out = self.top(b"grapevine_requests_total 1\n", b"grapevine_requests_total 9\n")
        self.assertRegex(out, r"(?m)^\* - +alone +- +[1-9][\d.]* +- ")
        self.assertIn("\nfailed -/s: cut -/s, 5xx -/s, queue full -/s; clients' own errors -/s (1 older router does not tell)\n", out)


if __name__ == "__main__":
    unittest.main()
