"""OpenTelemetry traces: what a collector gets of each request, what engines get of the trace, and collectors that fail."""

import json
import os
import signal
import threading
import unittest

from lib import HOST, LIMIT, Case, answer, answer_json, closed_port, request, wait_for
from lib_collector import Collector, dump

CHAT = "/v1/chat/completions"
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def chat(**more):
    return json.dumps(dict({"model": "m", "messages": [{"role": "user", "content": "hi"}]}, **more)).encode()


def event(value):
    return b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"


USAGE = {"prompt_tokens": 40, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 32}}
STREAM = (event({"choices": [{"delta": {"content": "a"}}]}) + event({"choices": [{"delta": {"content": "b"}}]}) +
          event({"choices": [], "usage": USAGE}) + event(b"[DONE]"))


class Traced(Case):
    def setUp(self):
        super().setUp()
        self.collector = self.keep(Collector())
        self.e = self.engine()

    def tearDown(self):
        if os.environ.get("TRACES"):
            dump(self.collector.posts, "%s/%s.json" % (os.environ["TRACES"], self.id()))
        super().tearDown()

    def traced(self, engines, *args, **how):
        return self.router(engines, "--trace-endpoint", self.collector.url, "--trace-sample", "1", *args, **how)

    def ask(self, r, path=CHAT, body=None, **headers):
        fields = [(k.replace("_", "-"), v) for k, v in headers.items()]
        return self.client(r).ask("POST", path, body or chat(), headers=fields)


class Requests(Traced):
    def test_a_plain_request(self):
        body = {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "usage": USAGE}
        self.e.replies(answer_json(body))
        r = self.traced([self.e])
        self.assertEqual(self.ask(r, x_request_id="one").status, 200)
        (s, (child,)), = self.collector.wait(1)
        self.assertIsNone(s.parent)
        self.assertEqual((s.name, child.name), ("POST " + CHAT, "POST"))
        for name, value in {"http.request.method": "POST", "url.path": CHAT, "http.route": CHAT,
                            "http.response.status_code": 200, "client.address": HOST,
                            "gen_ai.operation.name": "chat", "gen_ai.request.model": "m",
                            "gen_ai.usage.input_tokens": 40, "gen_ai.usage.output_tokens": 2,
                            "gen_ai.usage.cache_read.input_tokens": 32, "grapevine.request_id": "one",
                            "grapevine.replica": self.e.name, "grapevine.end": "whole"}.items():
            self.assertEqual(s[name], value, name)
        for name, value in {"server.address": HOST, "server.port": self.e.port, "http.response.status_code": 200,
                            "gen_ai.usage.cache_read.input_tokens": 32, "grapevine.replica": self.e.name,
                            "grapevine.cached_tokens.predicted": 0}.items():
            self.assertEqual(child[name], value, name)
        self.assertTrue(child["grapevine.reason"])
        self.assertFalse(s.failed or child.failed)
        self.assertIn("chosen", s.event_names())
        sent = self.e.requests[-1].get("traceparent")
        self.assertEqual(sent, "00-%s-%s-01" % (s.trace, child.id))
        self.assertEqual(r.metric("trace_spans_exported_total"), 2)

    def test_a_stream_has_its_first_token(self):
        self.e.replies(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" %
                       len(STREAM) + STREAM)
        r = self.traced([self.e])
        self.assertEqual(self.ask(r, body=chat(stream=True)).status, 200)
        (s, (child,)), = self.collector.wait(1)
        self.assertEqual(s.event_names(), ["chosen", "first_token"])
        self.assertEqual(child.event_names(), ["first_token"])
        self.assertIs(s["grapevine.stream"], True)
        self.assertEqual(s["gen_ai.usage.output_tokens"], 2)

    def test_a_retry_on_another_replica(self):
        good = self.engine()
        self.e.replies(answer(503, b"{}"))
        r = self.traced([self.e, good], "--policy", "round_robin")
        got = [self.ask(r).status for _ in range(2)]
        self.assertEqual(got, [200, 200])
        found = self.collector.wait(2)
        s, (first, second) = next(f for f in found if len(f[1]) == 2)
        self.assertEqual((first["grapevine.replica"], second["grapevine.replica"]), (self.e.name, good.name))
        self.assertEqual((first["http.response.status_code"], first["error.type"]), (503, "503"))
        self.assertTrue(first.failed and not second.failed and not s.failed)
        self.assertEqual(second["http.request.resend_count"], 1)
        self.assertLessEqual(first.end, second.end)
        self.assertEqual((s["grapevine.attempts"], s["http.response.status_code"]), (2, 200))
        for e, child in ((self.e, first), (good, second)):
            self.assertIn("00-%s-%s-01" % (s.trace, child.id), [a.get("traceparent") for a in e.requests])

    def test_refused_and_failed_requests_have_spans(self):
        self.e.handler = lambda asked: (asked.read_body(), asked.close())
        r = self.traced([self.e], "--body-bytes-max", "1KiB", "--retries-max", "0")
        self.assertEqual(self.ask(r, path="/nothing").status, 404)
        self.assertEqual(self.ask(r, body=b"x" * 2000).status, 413)
        self.assertEqual(self.ask(r).status, 502)
        found = {s["http.response.status_code"]: (s, children) for s, children in self.collector.wait(3)}
        s, children = found[404]
        self.assertEqual((s.name, s["url.path"], children, s.failed), ("POST", "/nothing", [], False))
        self.assertEqual(found[413][0]["grapevine.refused"], "body_limit")
        s, (child,) = found[502]
        self.assertTrue(s.failed and child.failed and s["error.type"])
        self.assertEqual(child["error.type"], "broken")

    def test_a_request_that_waited_has_a_queued_event(self):
        held = []
        self.e.handler = lambda asked: (asked.read_body(), held.append(asked), go.wait(LIMIT),
                                        asked.send(answer(200, b"{}")))
        go = threading.Event()
        r = self.traced([self.e], "--replica-requests-max", "1", "--queue-max", "5")
        clients = [self.client(r), self.client(r)]
        for c in clients:
            c.send(request("POST", CHAT, chat()))
        wait_for(lambda: r.metric("queue_length") == 1 and held, "one waits")
        go.set()
        self.assertEqual([c.read("POST").status for c in clients], [200, 200])
        names = sorted(s.event_names() for s, _ in self.collector.wait(2))
        self.assertEqual(names, [["chosen", "first_token"], ["queued", "chosen", "first_token"]])

    def test_health_and_admin_calls_have_no_spans(self):
        r = self.traced([self.e])
        self.assertEqual(self.client(r).ask("GET", "/health").status, 200)
        self.assertEqual(self.ask(r).status, 200)
        self.collector.wait(1)


class Context(Traced):
    def sent(self):
        return self.e.requests[-1].get("traceparent"), self.e.requests[-1].get("tracestate")

    def test_a_sampled_parent_is_continued(self):
        r = self.traced([self.e], "--trace-sample", "0")
        self.ask(r, traceparent="00-%s-%s-01" % (TRACE, SPAN), tracestate="a=b, c=d")
        (s, (child,)), = self.collector.wait(1)
        self.assertEqual((s.trace, s.parent), (TRACE, SPAN))
        self.assertEqual(self.sent(), ("00-%s-%s-01" % (TRACE, child.id), "a=b, c=d"))

    def test_an_unsampled_parent_passes(self):
        r = self.traced([self.e])
        parent = "00-%s-%s-00" % (TRACE, SPAN)
        self.ask(r, traceparent=parent, tracestate="a=b")
        self.assertEqual(self.sent(), (parent, "a=b"))
        self.ask(r)
        (s, _), = self.collector.wait(1)
        self.assertNotEqual(s.trace, TRACE)

    def test_a_malformed_parent_begins_a_new_trace(self):
        r = self.traced([self.e])
        self.ask(r, traceparent="00-%s-%s-01-x" % (TRACE, SPAN), tracestate="a=b")
        (s, (child,)), = self.collector.wait(1)
        self.assertNotEqual(s.trace, TRACE)
        self.assertIsNone(s.parent)
        self.assertEqual(self.sent(), ("00-%s-%s-01" % (s.trace, child.id), None))

    def test_unsampled_requests_carry_the_unsampled_flag(self):
        r = self.traced([self.e], "--trace-sample", "0")
        self.ask(r)
        self.assertRegex(self.sent()[0], "^00-[0-9a-f]{32}-[0-9a-f]{16}-00$")
        self.assertEqual(self.collector.posts, [])

    def test_without_tracing_trace_headers_pass_unchanged(self):
        r = self.router([self.e])
        for parent in ("00-%s-%s-01" % (TRACE, SPAN), "nonsense"):
            self.ask(r, traceparent=parent, tracestate="a=b")
            self.assertEqual(self.sent(), (parent, "a=b"))
        self.ask(r)
        self.assertEqual(self.sent(), (None, None))


class Failing(Traced):
    """A collector that fails harms nothing."""

    def served(self, r, n=5):
        for _ in range(n):
            self.assertEqual(self.ask(r).status, 200)

    def test_a_collector_that_comes_later_gets_all_spans(self):
        port = closed_port()
        r = self.router([self.e], "--trace-endpoint", "http://%s:%d/v1/traces" % (HOST, port),
                        "--trace-sample", "1")
        self.served(r)
        r.wait_event("trace_export_failed")
        self.served(r)
        late = self.keep(Collector(port=port))
        late.wait(10)
        r.wait_event("trace_export_works")
        self.assertEqual(len(r.events("trace_export_failed")), 1)
        self.assertEqual(r.metric("trace_spans_exported_total"), 20)

    def test_a_hung_collector_harms_nothing(self):
        self.collector.handler = lambda asked: (asked.read_body(), asked.wait_gone())
        r = self.traced([self.e])
        self.served(r)
        self.collector.wait_request()
        self.served(r)
        r.signal(signal.SIGINT)
        self.assertEqual(r.wait(), 0)

    def test_a_collector_that_refuses_harms_nothing(self):
        self.collector.status = 400
        r = self.traced([self.e])
        self.served(r)
        wait_for(lambda: r.metric('trace_spans_dropped_total{reason="refused"}') == 10, "all are dropped")
        self.assertEqual(r.events("trace_export_failed")[0]["status"], 400)
        self.collector.status = 200
        self.served(r, 1)
        r.wait_event("trace_export_works")

    def test_a_busy_collector_gets_the_same_spans_again(self):
        self.collector.status = 503
        r = self.traced([self.e])
        self.served(r, 1)
        wait_for(lambda: len(self.collector.posts) == 1, "a batch")
        self.collector.status = 200
        self.collector.wait(1)
        self.assertEqual(self.collector.posts[0], self.collector.posts[1])

    def test_nonsense_and_endless_answers_of_a_collector_do_no_harm(self):
        answers = [b"\0\1\2 nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1000000, b""]

        def handler(asked):
            asked.read_body()
            try:
                asked.send(answers.pop() if answers else answer(200, b"not JSON"))
            except OSError:
                pass
            asked.close()
        self.collector.handler = handler
        r = self.traced([self.e])
        self.served(r, 1)
        r.wait_event("trace_export_works")
        self.served(r, 1)
        self.assertEqual(r.metric("trace_export_failures_total"), 3)

    def test_pending_spans_are_sent_at_exit(self):
        r = self.traced([self.e])
        self.served(r, 3)
        r.signal(signal.SIGINT)
        self.assertEqual(r.wait(), 0)
        self.collector.wait(3)


if __name__ == "__main__":
    unittest.main()
