"""The result of gvctl status from several answers, at scripted admin ports."""

import json
import unittest

from lib import Case, answer_json
from lib_cluster import gvctl


def second(requests=0, cut=0, status_5xx=0, queue_full=0, **more):
    return dict({"requests": requests, "failed": {"cut": cut, "status_5xx": status_5xx, "queue_full": queue_full}}, **more)


def admin_port(engine, name, members=None, sources=(), figures=(), attention=None, **more):
    """Scripts the calls that status makes at that router's admin port. `figures`: None for an older router, which has
    none; `more` is added to them. `attention`: the items; None for an older router."""
    said = {"/readyz": answer_json({"ready": True, "router": name}), "/replicas": answer_json([]),
            "/members": answer_json({"self": name, "members": members}), "/sources": answer_json(list(sources)),
            "/convergence": answer_json({"equal": True, "nodes": {}}),
            "/attention": answer_json({"error": {}}, 404) if attention is None else
            answer_json({"router": name, "worst": "?", "more": 0, "items": attention}),
            "/figures": answer_json({"error": {}}, 404) if figures is None else
            answer_json(dict({"router": name, "figures": list(figures)}, **more))}

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

    def words(self):
        code, out, err = gvctl("status", admin=self.port.port)
        self.assertEqual((code, err), (0, ""))
        return out

    def test_status_reports_failures_by_reason(self):
        """Before, cut streams counted as answers with status 200, so nothing showed them."""
        admin_port(self.port, "r1", figures=[second(requests=40, cut=9), second(requests=60, cut=1, status_5xx=2, queue_full=3,
                                                                client_errors=31, client_gone=4, hidden=7)])
        self.assertIn("\nlast minute  100 requests, 15 failed (10 cut, 2 with a 5xx, 3 for a full queue); 31 client errors, 4 abandoned by their clients, 7 failures hidden by a retry\n", self.words())
        told = self.status()["last_minute"]
        self.assertEqual((told["failed"], told["failed_by_reason"]), (15, {"cut": 10, "status_5xx": 2, "queue_full": 3}))
        self.assertEqual((told["client_errors"], told["client_gone"], told["hidden"]), (31, 4, 7))

    def test_status_uses_the_singular(self):
        admin_port(self.port, "r1", figures=[second(requests=1, client_errors=1, client_gone=1, hidden=1)])
        self.assertIn("\nlast minute  1 request, 0 failed; 1 client error, 1 abandoned by its client, 1 failure hidden by a retry\n", self.words())

    def test_a_replica_that_was_never_checked_is_reported_as_such(self):
        admin_port(self.port, "r1")
        rest = self.port.handler

        def handler(asked):
            if asked.path != "/replicas":
                return rest(asked)
            asked.send(answer_json([{"name": "a:1", "health": "unknown", "why_text": ""}]))
            asked.close()
        self.port.handler = handler
        self.assertIn(": a:1 (no health check has answered yet)\n", self.words())

    def test_client_errors_are_not_failures(self):
        admin_port(self.port, "r1", figures=[second(requests=5, client_errors=5)],
                   total=second(requests=9, cut=2, status_5xx=1, client_errors=5, refused=42))
        self.assertIn("\nlast minute  5 requests, 0 failed; 5 client errors\n", self.words())
        self.assertEqual(self.status()["since_start"], {"-": {"requests": 9, "refused": 42, "client_errors": 5, "failed": 3}})

    def test_an_older_routers_failures_are_unknown(self):
        unknown = dict.fromkeys(("requests", "refused", "client_errors", "failed"))
        for figures, minute in ((None, "not known (an older router)"), ([second(requests=5, cut=2)], "5 requests, 2 failed (2 cut)")):
            admin_port(self.port, "r1", figures=figures)
            self.assertTrue(self.words().endswith(
                "\nlast minute  %s\nfrom cache   not known (an older router)\n"
                "(Counts are from 0 of 1 router: an older router does not report this.)\n" % minute), self.words())
            told = self.status()
            self.assertEqual((told["since_start"], told["routers_counted"]), ({"-": unknown}, 0))
            self.assertEqual(told["last_minute"]["routers_counted"], int(figures is not None))

    def test_malformed_answers_never_crash_gvctl(self):
        for odd in (None, 7, "x", [], [[]], {}, {"requests": "x", "failed": 3, "ttft_counts": {"a": []}, "by_replica": [1]}):
            admin_port(self.port, "r1", figures=[odd], total=odd, local_shortages=odd, config_refused=odd, config_waits=odd,
                       tcp_filtered=odd)
            self.assertIn("\nrequests     0 in flight, 0 waiting\n", self.words())
            self.status()
            self.assertEqual(gvctl("top", "--once", admin=self.port.port)[0], 0)

    def second(self):
        """The admin port of r2, and r1's list of both members."""
        other = self.engine()
        return other, [{"name": "r1", "state": "alive", "self": True, "admin": self.port.name},
                       {"name": "r2", "state": "alive", "self": False, "admin": other.name}]

    def test_status_reports_problems_for_the_operator(self):
        other, members = self.second()
        admin_port(self.port, "r1", members, total={}, tls_files_refused=True)
        admin_port(other, "r2", members, total={"connections_refused": 3}, config_refused=True, client_keys_refused=True,
                   tls_files_refused=True, config_waits=2, local_shortages=["ports", "odd"])
        kept = ": the file cannot be used, and the previous one stays in force (gvctl "
        self.assertTrue(self.words().endswith("".join(line + "\n" for line in (
            "from cache   not known: no answer has reported it",
            "shortage     no local port is left at r2 for connections to replicas: to do: widen "
            "net.ipv4.ip_local_port_range, set net.ipv4.tcp_tw_reuse=1, or lengthen upstream-keepalive",
            "refused      3 connections since the start at r2: over connections-max (gvctl config shows it), "
            "or over the limit of the admin and probe ports",
            "settings     refused at r2%s--admin http://%s config)" % (kept, other.name),
            "client keys  refused at r2%sevents)" % kept, "TLS files    refused at r1, r2%sevents)" % kept,
            "settings     2 wait for a restart at r2 (gvctl --admin http://%s config)" % other.name))), self.words())
        told = self.status()
        self.assertEqual([told[name] for name in ("config_refused", "client_keys_refused", "tls_files_refused")],
                         [["r2"], ["r2"], ["r1", "r2"]])
        self.assertEqual([told[name] for name in ("config_waits", "connections_refused", "local_shortages")],
                         [{"r2": 2}, {"r2": 3}, {"r2": ["ports", "odd"]}])

    def test_a_replica_that_two_sources_list_is_removed_once(self):
        admin_port(self.port, "r1", sources=[{"kind": "settings", "removed": ["a:1", "b:2"]},
                                                       {"kind": "file", "removed": ["a:1"]}])
        self.assertEqual(self.status()["replicas_removed"], ["a:1", "b:2"])

    def test_filtered_tcp_is_reported_at_the_called_router_too(self):
        """Before, only the joining router, which makes the calls, knew: status at the other showed nothing."""
        other, members = self.second()
        admin_port(self.port, "r1", members, tcp_filtered=0)
        admin_port(other, "r2", members, tcp_filtered=1)
        self.assertIn("\nnetwork      TCP from r2 to 1 other router is filtered and UDP is not: open the gossip port for both "
                      "(gvctl --admin http://%s members)\n" % other.name, self.words())

    def test_calls_from_another_cluster_are_reported(self):
        """Before, only the called router's log reported them, while status at the calling router guessed."""
        other, members = self.second()
        admin_port(self.port, "r1", members, other_cluster_asks=0)
        admin_port(other, "r2", members, other_cluster_asks=1)
        self.assertIn("\nnetwork      a router with this key file and another cluster-name asks r2 to join "
                      "(gvctl --admin http://%s events)\n" % other.name, self.words())

    def test_dead_routers_are_not_called(self):
        """Their addresses may belong to other hosts by now, or delay the answer for a second."""
        ports = {"r1": self.port, "r2": self.engine(), "r3": self.engine(), "r4": self.engine()}
        states = {"r1": "alive", "r2": "alive", "r3": "dead", "r4": "left"}
        members = [{"name": name, "state": states[name], "self": name == "r1", "admin": port.name}
                   for name, port in ports.items()]
        for name, port in ports.items():
            admin_port(port, name, members, total={"requests": 5})
        told = self.status()
        self.assertEqual(({n: c["requests"] for n, c in told["since_start"].items()}, told["routers_counted"]),
                         ({"r1": 5, "r2": 5}, 2))
        self.assertEqual((ports["r3"].connections, ports["r4"].connections), (0, 0))


class Top(Case):
    def top(self, before, after):
        """One frame of top, which looks twice."""
        port, looks = self.engine(), []
        admin_port(port, "r1")
        rest = port.handler

        def handler(asked):
            if asked.path != "/figures":
                return rest(asked)
            looks.append(asked)
            asked.send(answer_json(dict({"router": "r1", "figures": []}, **(before if len(looks) == 1 else after))))
            asked.close()
        port.handler = handler
        code, out, err = gvctl("top", "--once", admin=port.port)
        self.assertEqual((code, err, len(looks)), (0, "", 2))
        return out

    def test_top_shows_the_rate_of_failures(self):
        out = self.top({"total": second(requests=100, cut=10, status_5xx=7)},
                       {"total": second(requests=1000, cut=500, status_5xx=7, client_errors=9)})
        self.assertRegex(out, r"\nfailed [1-9]\d+/s: cut [1-9]\d+/s, 5xx 0\.0/s, queue full 0\.0/s; clients' own errors [1-9][\d.]*/s\n")
        self.assertRegex(out, r"(?m)^  ROUTER +STATE +LAG ms +REQ/s +FAILED/s ")
        self.assertRegex(out, r"(?m)^\* - +alone +- +[1-9]\d+ +[1-9]\d+ ")

    def test_top_shows_times_since_the_last_frame(self):
        """The 99th of a hundred streams in the bucket from 0.1 to 0.25 s."""
        total = {"requests": 1, "prompt_tokens": 1000, "cached_tokens": 0}
        out = self.top({"total": dict(total, first_tokens=7, ttft_sum_s=700, ttft_counts=[0] * 16 + [7] + [0] * 3)},
                       {"total": dict(total, prompt_tokens=3000, cached_tokens=500, first_tokens=107, ttft_sum_s=720,
                                      ttft_counts=[0] * 7 + [100] + [0] * 8 + [7] + [0] * 3)})
        self.assertIn("\nfrom cache 25.0 %, first token 0.200 s on average, 0.248 s for 99 %\n", out)

    def test_an_older_routers_failure_rate_is_unknown(self):
        out = self.top({}, {})
        self.assertRegex(out, r"(?m)^\* - +alone( +-){7}$")
        self.assertIn("\nrequests -/s, 0 in flight, 0 waiting (counted at 0 of 1 router)\n"
                      "failed -/s: cut -/s, 5xx -/s, queue full -/s; clients' own errors -/s (1 older router does not report it)\n", out)


if __name__ == "__main__":
    unittest.main()
