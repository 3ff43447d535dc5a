"""What a router has learned of its engines, and says of it. Who gets the work is tried in virtual time
(tests/unit/route/fleet_test.c, due_test.c): real engines on a busy machine are as slow as it."""

import json
import threading
import unittest

from lib import HOST, Case, wait_for
from test_daemon import run
from test_engines import CHAT, message, words


class Learning(Case):
    def test_explain_says_what_a_slow_replica_is_due(self):
        """One client keeps the fast replica busy: whoever comes beside it would have to wait there, and the slow
        one, which is free, has had less than its speed deserves."""
        fast, slow = self.sim("--speed-up", "4"), self.sim("--speed-up", "4", "--prefill-rate", "1000")
        router = self.router([fast.url, slow.url])
        router.wait_up(2)
        busy, over = threading.Event(), threading.Event()
        def keep_busy():
            requests = self.client(router)
            n = 0
            while not over.is_set():
                n += 1
                requests.post(CHAT, {"model": "sim", "max_tokens": 5, "stream": True,
                                     "messages": [message("user", words("busy %d" % n, 900))]})
                busy.set()
        client = threading.Thread(target=keep_busy)
        client.start()
        try:
            busy.wait()
            body = json.dumps({"model": "sim", "messages": [message("user", words("asked", 200))]}).encode()
            said = "%s is slow, but nothing waits there" % slow.name
            wait_for(lambda: said in run("gvctl", "--admin", "http://%s:%d" % (HOST, router.admin_port), "explain",
                                         stdin=body)[1], "the sentence")
        finally:
            over.set()
            client.join()


if __name__ == "__main__":
    unittest.main()
