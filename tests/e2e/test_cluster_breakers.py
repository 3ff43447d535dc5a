"""Routers that hear of each other's trouble with a replica."""

import json
import time
import unittest

from lib import answer_json, wait_for
from lib_cluster import Clustered

CHAT = "/v1/chat/completions"
BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
GOOD = answer_json({"choices": [{"message": {"content": "x"}}]})
BAD = answer_json({"error": {"message": "no", "code": 500}}, 500)


class Breakers(Clustered):
    def ask(self, r):
        c = self.client(r)
        try:
            return c.ask("POST", CHAT, BODY).status
        finally:
            c.close()

    def of(self, r, metric, e):
        return r.metric('replica_%s{replica="%s"}' % (metric, e.name))

    def test_routers_share_one_back_off_and_one_trial(self):
        bad, good = self.engine(), self.engine()
        bad.replies(BAD)
        good.replies(GOOD)
        first = self.node("r1", [bad, good], "--policy", "round_robin")
        routers = [first] + [self.node("r%d" % n, [bad, good], "--policy", "round_robin",
                                       join=first) for n in (2, 3)]
        for r in routers:
            self.wait_alive(r, ["r1", "r2", "r3"])
            r.wait_up(2)
        while self.of(first, "backing_off", bad) == 0:
            self.ask(first)
        began, asked = time.monotonic(), len(bad.requests)
        for r in routers[1:]:
            wait_for(lambda: self.of(r, "backing_off_elsewhere", bad) == 1, "heard of it")
        for _ in range(4):
            for r in routers:
                self.assertEqual(self.ask(r), 200)
        if time.monotonic() - began < 0.6:  # on a busy machine the first back-off may be over
            self.assertEqual(len(bad.requests), asked)  # no router tries while it runs
        end = time.monotonic() + 5
        while time.monotonic() < end:
            for r in routers:
                self.ask(r)
        # Trials after 1, 2, 4 s, and at times one that two routers begin before they hear of each
        # other's; 3 routers that each tried alone would make 9 and more.
        self.assertLessEqual(len(bad.requests) - asked, 6)
        bad.replies(GOOD)

        def used_by_all():
            for r in routers:
                self.ask(r)
            return not any(self.of(r, "backing_off_elsewhere", bad) or
                           self.of(r, "backing_off", bad) for r in routers)
        wait_for(used_by_all, "used again")
        for r in routers:
            before = len(bad.requests)
            for _ in range(2):
                self.assertEqual(self.ask(r), 200)
            self.assertEqual(len(bad.requests), before + 1)  # in turn


if __name__ == "__main__":
    unittest.main()
