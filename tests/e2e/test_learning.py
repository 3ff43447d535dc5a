"""What the router learns of its engines decides who gets the work: real processes, default settings.
tests/unit/replica/fleet_test.c has more cases, in virtual time."""

import json
import threading
import unittest

from lib import HOST, Case, wait_for
from test_daemon import run
from test_engines import CHAT, message, words


class Learning(Case):
    def ask(self, router, clients, requests, seed):
        """Distinct prompts, each client one after the other; how many each replica got."""
        served, errors = {}, []
        def work(number):
            client = self.client(router)
            for i in range(requests // clients):
                got = client.post(CHAT, {"model": "sim", "max_tokens": 5, "stream": True, "messages": [
                    message("user", words((seed, number, i).__repr__(), 900))]})
                if got.status != 200:
                    errors.append(got)
                name = got.get("x-grapevine-replica")
                served[name] = served.get(name, 0) + 1
        threads = [threading.Thread(target=work, args=(n,)) for n in range(clients)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(errors, [])
        return served

    def starved(self, clients):
        """Every engine's first answer is slow. One that was judged by that alone got none of the next
        sixty requests."""
        sims = [self.sim("--speed-up", "5") for _ in range(2)]
        router = self.router([s.url for s in sims])
        router.wait_up(2)
        sims[0].call("POST", "/sim/fail", {"mode": "slow", "delay_ms": 2000, "count": 1})
        self.ask(router, clients, 12, "first")
        served = self.ask(router, clients, 120, "then")
        self.assertEqual(sum(served.values()), 120)
        for s in sims:
            self.assertGreaterEqual(served.get(s.name, 0), 12, served)

    def test_explain_says_what_a_slow_replica_is_due(self):
        """One client keeps the fast replica busy: whoever comes beside it would have to wait there, and the slow
        one, which is free, has had less than its speed deserves."""
        fast, slow = self.sim("--speed-up", "4"), self.sim("--speed-up", "4", "--prefill-rate", "1000")
        router = self.router([fast.url, slow.url])
        router.wait_up(2)
        busy, over = threading.Event(), threading.Event()
        def keep_busy():
            n = 0
            while not over.is_set():
                n += 1
                self.ask(router, 1, 1, ("busy", n))
                busy.set()
        client = threading.Thread(target=keep_busy)
        client.start()
        try:
            busy.wait()
            body = json.dumps({"model": "sim", "messages": [message("user", words("asked", 200))]}).encode()
            said = "%s is slow and has no line" % slow.name
            wait_for(lambda: said in run("gvctl", "--admin", "http://%s:%d" % (HOST, router.admin_port), "explain",
                                         stdin=body)[1], "the sentence")
        finally:
            over.set()
            client.join()

    def test_a_slow_first_answer_starves_no_replica_of_one_client(self):
        self.starved(1)

    def test_a_slow_first_answer_starves_no_replica_of_two_clients(self):
        self.starved(2)

    def test_a_slow_first_answer_starves_no_replica_of_four_clients(self):
        self.starved(4)


if __name__ == "__main__":
    unittest.main()
