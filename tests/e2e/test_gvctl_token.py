"""gvctl shows its token to the router named on the command line, and to no address that this router names. `gvctl
status` sent it to any responder at the members' addresses, before verifying its identity."""

import json
import os
import tempfile
import unittest

from lib import HOST, Case, answer, answer_json, wait_for
from lib_cluster import Clustered, gvctl

def figures(name, requests):
    return {"router": name, "figures": [], "total": {"requests": requests}}


class Token(Case):
    def setUp(self):
        super().setUp()
        self.asked, self.named = self.engine(), self.engine()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "token")
        with open(self.path, "w") as f:
            f.write("sesame\n")

    def serves(self, port, answers):
        def handler(asked):
            asked.read_body()
            said = answers.get(asked.target, (404, {}))
            asked.send(answer(200, said) if isinstance(said, bytes) else answer_json(said[1], said[0]))
            asked.close()
        port.handler = handler

    def status(self, said):
        """The counts of `gvctl status` if the other router's admin port answers `said`."""
        rows = [{"name": "r1", "self": True, "state": "alive", "ready": True},
                {"name": "r2", "state": "alive", "ready": True, "session": True,
                 "admin": "%s:%d" % (HOST, self.named.port)}]
        self.serves(self.asked, {
            "/replicas": (200, [{"name": "a:1", "health": "up"}]), "/figures?n=60": (200, figures("r1", 1)),
            "/readyz?format=json": (200, {"ready": True, "router": "r1"}), "/members": (200, {"members": rows}),
            "/convergence": (200, {"equal": True, "nodes": {}})})
        self.serves(self.named, {"/figures?n=60": said})
        for port in (self.asked, self.named):
            port.clear()
        code, out, err = gvctl("status", "-o", "json", "--token-file", self.path, admin=self.asked.port)
        self.assertEqual((code, err), (0, ""), out)
        shown = {a.target: a.get("authorization") for a in self.asked.requests}
        self.assertEqual((shown["/replicas"], shown["/figures?n=60"]), ("Bearer sesame", None))
        self.assertGreater(len(self.named.requests), 0)
        self.assertEqual([a.get("authorization") for a in self.named.requests],
                         [None] * len(self.named.requests), "it was shown to an address that was told")
        counted = json.loads(out)["since_start"]
        return {name: router["requests"] for name, router in counted.items()}, [a.target for a in self.named.requests]

    def test_addresses_named_by_a_router_never_get_the_token(self):
        asked = ["/figures?n=60"]
        self.assertEqual(self.status((200, figures("r2", 40))), ({"r1": 1, "r2": 40}, asked))
        self.assertEqual(self.status((200, figures("r9", 40))), ({"r1": 1}, asked), "another router")
        for said in ([], {}, "r2", {"router": 2, "total": {"requests": 40}}):
            self.assertEqual(self.status((200, said)), ({"r1": 1}, asked), "none")

    def test_an_older_router_is_not_counted(self):
        for total in ({}, {"total": None}, {"total": [40]}):
            self.assertEqual(self.status((200, dict({"router": "r2", "figures": []}, **total)))[0], {"r1": 1, "r2": None})
        self.assertEqual(self.status((404, {"error": {}}))[0], {"r1": 1})

    def test_calls_that_need_no_token_are_sent_without(self):
        for command, says in (("metrics", answer(200, b"x 1\n")), ("ready", answer(200, b"ready\n")),
                              ("alive", answer(200, b"ok\n"))):
            self.asked.clear()
            self.asked.closes(says)
            self.assertEqual(gvctl(command, "--token-file", self.path, admin=self.asked.port)[0], 0)
            self.assertIsNone(self.asked.requests[-1].get("authorization"), command)


class Cluster(Clustered):
    def test_all_routers_are_counted_if_reading_needs_a_token(self):
        sim = self.sim("--speed-up", "50")
        path = os.path.join(self.folder.name, "token")
        with open(path, "w") as f:
            f.write("sesame\n")
        os.chmod(path, 0o600)
        tokens = ("--admin-read-token-file", path)
        one = self.node("r1", [sim], *tokens)
        two = self.node("r2", [], *tokens, join=one)
        ask = ("status", "-o", "json", "--token-file", path)
        told = wait_for(lambda: (lambda s: s if s["routers"] == {"alive": 2} and s["routers_counted"] == 2 else None)
                        (json.loads(gvctl(*ask, admin=two.admin_port)[1])), "both are counted")
        self.assertEqual(told["router"], "r2")
        self.assertEqual(one.admin("GET", "/readyz?format=json").json["router"], "r1")


if __name__ == "__main__":
    unittest.main()
