"""Limits of client keys over several routers."""

import json
import os
import unittest

from lib import answer_json, request, wait_for
from lib_cluster import Clustered, gvctl
from test_client_keys import ANSWER, CHAT, bearer, body


class OverAllRouters(Clustered):
    def setUp(self):
        super().setUp()
        self.keys = os.path.join(self.folder.name, "client.keys")

    def new_client(self, *options):
        status, out, err = gvctl("key", "new", *options, "--file", self.keys)
        self.assertEqual((status, err), (0, ""))
        return out.strip()

    def test_requests_a_minute(self):
        """The others count the requests of each router, and a router that starts later learns the counts."""
        e = self.engine().replies(answer_json(ANSWER))
        key = self.new_client("alice", "--requests-per-minute", "30")
        first, second = self.cluster(2, [e], "--client-keys-file", self.keys)
        for _ in range(15):
            self.assertEqual(self.client(first).post(CHAT, body(), bearer(key)).status, 200)
        third = self.node("r3", [e], "--client-keys-file", self.keys, join=first)
        served = 0

        def refused():
            nonlocal served
            r = (second, third)[served % 2]
            got = self.client(r).post(CHAT, body(), bearer(key))
            if got.status == 200:
                served += 1
            return got.status == 429
        wait_for(refused, "the limit", step=0.1)
        # Some requests pass before the other routers hear of them; if the test is slow, some leave the minute.
        self.assertLessEqual(served, 15 + 10)
        self.assertGreaterEqual(served, 10)
        wait_for(lambda: self.client(first).post(CHAT, body(), bearer(key)).status == 429,
                 "the limit at the first router")

    def test_requests_in_flight_of_a_dead_router_no_longer_count(self):
        e = self.engine()
        held = []
        e.handler = held.append
        key = self.new_client("alice", "--in-flight", "2")
        first, second = self.cluster(2, [e], "--client-keys-file", self.keys)
        clients = [self.client(first) for _ in range(2)]
        for c in clients:
            c.send(request("POST", CHAT, json.dumps(body()).encode(), bearer(key)))
        wait_for(lambda: len(held) == 2, "both at the engine")
        e.handler = e.replies(answer_json(ANSWER)).handler
        wait_for(lambda: self.client(second).post(CHAT, body(), bearer(key)).status == 429,
                 "the other router's share")
        first.kill()
        first.stopped = True
        wait_for(lambda: self.client(second).post(CHAT, body(), bearer(key)).status == 200,
                 "what the dead one had is gone")

    def test_every_router_serves_a_stored_response_to_its_maker_only(self):
        sims = [self.sim("--speed-up", "50", "--model", "m") for _ in range(2)]
        alice, bob = self.new_client("alice", "--models", "m"), self.new_client("bob")
        first, second = self.cluster(2, sims, "--client-keys-file", self.keys)
        for r in (first, second):
            r.wait_up(2)
        asked = {"model": "m", "input": "x", "max_output_tokens": 2}
        made = self.client(first).post("/v1/responses", asked, bearer(alice)).json["id"]
        self.converge(first, 2)
        for r in (second, first):
            self.assertEqual(self.client(r).post("/v1/responses", asked, bearer(bob)).status, 200)
            got = self.client(r).ask("GET", "/v1/responses/" + made, headers=bearer(bob))
            self.assertEqual((got.status, got.get("x-grapevine-reason")), (404, "key_response"))
            self.assertIn("Response with id '%s' not found." % made, got.json["error"]["message"])
            goes_on = dict(asked, previous_response_id=made)
            self.assertEqual(self.client(r).post("/v1/responses", goes_on, bearer(bob)).status, 404)
            self.assertEqual(self.client(r).post("/v1/responses", goes_on, bearer(alice)).status, 200)
            got = self.client(r).ask("GET", "/v1/responses/" + made, headers=bearer(alice))
            self.assertEqual((got.status, got.json["id"]), (200, made))
            label = '{key="bob",limit="responses"}'
            self.assertEqual(r.metrics()["grapevine_key_refused_total" + label], 2)


if __name__ == "__main__":
    unittest.main()
