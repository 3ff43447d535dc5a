"""What gvctl status makes of several answers, at scripted admin ports."""

import json
import unittest

from lib import Case, answer, answer_json
from lib_cluster import gvctl


def admin_port(engine, name, metrics, members=None, sources=()):
    """The calls of that router's admin port that status asks."""
    said = {"/readyz": answer_json({"ready": True, "router": name}), "/metrics": answer(200, metrics),
            "/replicas": answer_json([]), "/members": answer_json({"self": name, "members": members}),
            "/sources": answer_json(list(sources)), "/convergence": answer_json({"equal": True, "nodes": {}})}

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
        admin_port(self.port, "r1", b'grapevine_requests_refused_total{reason="path"} 40\n'
                                    b'grapevine_requests_refused_total{reason="queue_full"} 2\n')
        self.assertEqual(self.status()["requests_refused"], 42)

    def test_a_replica_that_two_sources_list_is_removed_once(self):
        admin_port(self.port, "r1", b"x 1\n", sources=[{"kind": "settings", "removed": ["a:1", "b:2"]},
                                                       {"kind": "file", "removed": ["a:1"]}])
        self.assertEqual(self.status()["replicas_removed"], ["a:1", "b:2"])

    def test_the_dead_are_not_asked(self):
        """Their address may be somebody else's by now, or hold up the answer for a second."""
        ports = {"r1": self.port, "r2": self.engine(), "r3": self.engine(), "r4": self.engine()}
        states = {"r1": "alive", "r2": "alive", "r3": "dead", "r4": "left"}
        members = [{"name": name, "state": states[name], "self": name == "r1", "admin": port.name}
                   for name, port in ports.items()]
        for name, port in ports.items():
            admin_port(port, name, b"grapevine_requests_total 5\n", members)
        told = self.status()
        self.assertEqual((told["requests"], told["routers_counted"]), (10, 2))
        self.assertEqual((ports["r3"].connections, ports["r4"].connections), (0, 0))


if __name__ == "__main__":
    unittest.main()
