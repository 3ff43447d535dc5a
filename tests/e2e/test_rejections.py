"""A replica that rejects at once what its peers accept: it has room for everything, as it computes
nothing, and must not get it."""

import json
import threading
import time
import unittest

from lib import SLOW, answer_json, wait_for
from lib_cluster import Clustered

CHAT = "/v1/chat/completions"
GOOD = {"choices": [{"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}]}
STATUSES = (400, 401, 403, 404, 405, 413, 415, 422)
WORK_S = 0.1  # of a good answer


def body(n=0, **more):
    return json.dumps(dict({"model": "m", "messages": [{"role": "user", "content": "hi %d" % n}]},
                           **more)).encode()


def error(status):
    return answer_json({"error": {"message": "not here", "type": "E", "code": status}}, status)


class Rejecting(Clustered):
    def good(self, **how):
        e = self.engine(**how)

        def handler(asked):
            asked.read_body()
            time.sleep(WORK_S)
            asked.send(answer_json(GOOD))
        e.handler = handler
        return e

    def bad(self, *statuses):
        """Rejects with each of these in turn."""
        e = self.engine()
        lock, turn = threading.Lock(), [0]

        def handler(asked):
            asked.read_body()
            with lock:
                turn[0] += 1
                status = statuses[turn[0] % len(statuses)]
            asked.send(error(status))
        e.handler = handler
        return e

    def load(self, routers, requests, clients, make=body, headers=()):
        """The statuses that clients got; they ask one after the other, each at one router."""
        lock, got, left = threading.Lock(), [], [requests]

        def run(n):
            client = self.client(routers[n % len(routers)])
            while True:
                with lock:
                    if left[0] == 0:
                        return
                    left[0] -= 1
                    number = left[0]
                status = client.ask("POST", CHAT, make(number), headers=headers).status
                with lock:
                    got.append(status)
        threads = [threading.Thread(target=run, args=(n,)) for n in range(clients)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(len(got), requests)
        return got

    def of(self, r, metric, e):
        return r.metric('replica_%s{replica="%s"}' % (metric, e.name))


class Alone(Rejecting):
    """One of several replicas rejects everything."""

    def test_one_of_three(self):
        for status in STATUSES:
            bad, peers = self.bad(status), [self.good(), self.good()]
            r = self.router([bad] + peers)
            got = self.load([r], 300, 12)
            print(status, len(bad.requests), sum(s != 200 for s in got))
            r.stop()

    def test_one_of_eight(self):
        bad, peers = self.bad(*STATUSES), [self.good() for _ in range(7)]
        r = self.router([bad] + peers)
        got = self.load([r], 600, 24)
        print("eight", len(bad.requests), sum(s != 200 for s in got))

    def test_one_of_eight_and_three_routers(self):
        bad, peers = self.bad(*STATUSES), [self.good() for _ in range(7)]
        nodes = self.cluster(3, [bad] + peers)
        for r in nodes:
            r.wait_up(8)
        got = self.load(nodes, 600, 24)
        print("three", len(bad.requests), sum(s != 200 for s in got))

    def test_all_alike(self):
        bad = [self.bad(401) for _ in range(4)]
        r = self.router(bad)
        got = self.load([r], 400, 8)
        print("alike", sum(len(b.requests) for b in bad))


if __name__ == "__main__":
    unittest.main()
