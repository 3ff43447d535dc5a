"""What is tried again elsewhere, what is not, and how often: failures that another replica could
prevent are not seen by clients."""

import json
import time
import unittest

from lib import SSE_HEAD, Case, answer, chunk, wait_for

CHAT = "/v1/chat/completions"


def chat(content="hi", **more):
    return json.dumps(dict({"model": "m", "messages": [{"role": "user", "content": content}]},
                           **more)).encode()


class Kept(Case):
    """Connections that are used again."""

    def test_what_must_not_be_done_twice_never_goes_out_on_a_kept_connection(self):
        """Such a connection may be closed without a word of whether the request was read."""
        e = self.engine()
        r = self.router([e], "--other-paths", "pass")
        for _ in range(3):
            self.assertEqual(self.client(r).ask("POST", "/deed", b"x").status, 200)
        self.assertEqual([a.index for a in e.requests], [0, 0, 0])

    def test_a_kept_connection_that_breaks_late_was_at_work(self):
        """It is no stale one: the failure is the replica's, and another replica is asked."""
        engines = [self.engine(), self.engine()]

        def handler(asked):
            asked.read_body()
            if asked.index > 0 and not broke:
                broke.append(asked)
                time.sleep(0.3)
                asked.close()
            else:
                asked.send(answer(200, b"ok"))
        broke = []
        for e in engines:
            e.handler = handler
        r = self.router(engines)
        for _ in range(6):
            self.assertEqual(self.client(r).ask("POST", CHAT, chat()).status, 200)
        self.assertEqual(len(broke), 1)
        self.assertEqual(r.metric('retries_total{reason="broken"}'), 1)
        self.assertEqual(r.metric("upstream_broken_total"), 1)


class Retries(Case):
    """Two replicas, one of them bad."""

    def setUp(self):
        super().setUp()
        self.bad = self.engine()
        self.good = self.engine()

    def pair(self, *args, **how):
        return self.router([self.bad, self.good], "--other-paths", "pass", "--policy",
                           "round_robin", *args, **how)

    def errors(self, statuses, tries):
        for status in statuses:
            self.bad.replies(answer(status, b'{"detail":"mine"}'))
            self.good.handler = self.bad.handler
            r = self.pair()
            got = self.client(r).ask("POST", CHAT, chat())
            self.assertEqual((got.status, got.body), (status, b'{"detail":"mine"}'))
            self.assertEqual(len(self.bad.requests) + len(self.good.requests), tries, status)
            self.assertEqual(got.get("retry-after"), "1" if status in (429, 503) else None)
            self.bad.clear()
            self.good.clear()
            r.stop()

    def test_errors_of_the_request_are_the_answer(self):
        self.errors((501, 505), 1)

    def test_rejections_may_be_the_replicas(self):
        """Another one is asked, of a client of which nothing is known, and says the same."""
        self.errors((400, 401, 404, 422), 2)

    def test_errors_of_all_replicas_are_the_answer(self):
        """Another one might have served it, so it was asked."""
        self.errors((429, 500, 502, 503, 504), 2)

    def test_an_error_of_one_replica_is_not_seen(self):
        drains = b'{"error":{"message":"cannot schedule new futures after shutdown","code":500}}'
        for status, body in ((429, b"{}"), (500, b"{}"), (500, drains), (502, b""), (503, b""),
                             (504, b"")):
            self.bad.replies(answer(status, body))
            self.good.replies(answer(200, b"ok"))
            r = self.pair()
            for _ in range(4):
                self.assertEqual(self.client(r).ask("POST", CHAT, chat()).body, b"ok")
            r.stop()

    def test_a_stream_that_dies_before_its_first_token_is_not_seen(self):
        def handler(asked):
            asked.read_body()
            asked.send(SSE_HEAD + chunk(b'data: {"choices":[{"delta":{"role":"assistant",'
                                        b'"content":""}}]}\n\n'))
            time.sleep(0.05)
            asked.reset()
        whole = b'data: {"text":"1"}\n\ndata: [DONE]\n\n'
        self.bad.handler = handler
        self.good.closes(SSE_HEAD + chunk(whole) + b"0\r\n\r\n")
        r = self.pair()
        for _ in range(4):
            self.assertEqual(self.client(r).ask("POST", CHAT, chat(stream=True)).body, whole)
        self.assertGreater(r.metric("retries_total"), 0)
        self.assertEqual(r.metric("answers_cut_total"), 0)

    def test_retries_keep_to_a_budget_when_all_replicas_fail(self):
        for e in (self.bad, self.good):
            e.replies(answer(503, b"{}"))
        r = self.pair("--retry-budget", "0.1", "--access-log", "all")
        c = self.client(r)
        limits = []
        for _ in range(200):
            a = c.ask("POST", CHAT, chat())
            self.assertEqual(a.status, 503)
            limits.append(a.all("x-grapevine-limit"))
        self.assertEqual(limits[0], [])  # both were asked
        self.assertEqual(limits[-1], ["retry-budget"])
        wait_for(lambda: "retry-budget" in [e["limit"] for e in r.events("request")], "it in the log")
        tried = len(self.bad.requests) + len(self.good.requests)
        self.assertLessEqual(tried, 200 + 20 + 0.1 * 200)
        self.assertGreater(tried, 200 + 20)
        self.assertGreater(r.metric("retry_budget_exhausted_total"), 0)


if __name__ == "__main__":
    unittest.main()
