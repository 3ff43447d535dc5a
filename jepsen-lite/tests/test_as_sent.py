"""Bodies that an engine may have sent, if a router may change them."""

import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from workloads.as_sent import as_sent, digest  # noqa: E402

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"


def event(id, created, delta, more=""):
    return b'data: {"id":"%s","object":"chat.completion.chunk","created":%d,"choices":[{"delta":%s}]%s}\n\n' % (
        id.encode(), created, delta.encode(), more.encode())


ROLE, TOKEN = '{"role":"assistant","content":""}', '{"content":"x"}'
DONE = b"data: [DONE]\n\n"


class AsSent(unittest.TestCase):
    def test_an_answer_of_one_engine_has_no_other_form(self):
        self.assertEqual(as_sent(CHAT, event("a", 1, ROLE) + event("a", 1, TOKEN) + DONE), [])

    def test_a_takeover_before_the_first_token_has_another_form(self):
        rest = event("b", 2, TOKEN) + event("b", 2, TOKEN) + DONE
        got = as_sent(CHAT, event("a", 1, ROLE) + rest)
        self.assertEqual([{k: g[k] for k in ("bytes", "hash")} for g in got], [digest(event("b", 2, ROLE) + rest)])

    def test_the_first_event_has_the_second_engines_framing(self):
        """The engine that took over sent its own first event in its own framing."""
        def crlf(body):
            return body.replace(b"data: ", b"data:").replace(b"\n", b"\r\n")
        for one, other in ((bytes, crlf), (crlf, bytes), (crlf, crlf)):
            rest = other(event("b", 2, TOKEN) + event("b", 2, TOKEN) + DONE)
            got = as_sent(CHAT, one(event("a", 1, ROLE)) + rest)
            self.assertEqual([g["hash"] for g in got], [digest(other(event("b", 2, ROLE)) + rest)["hash"]])

    def test_a_takeover_after_a_token_has_no_other_form(self):
        self.assertEqual(as_sent(CHAT, event("a", 1, TOKEN) + event("b", 2, TOKEN) + DONE), [])

    def test_an_answer_of_three_engines_has_no_other_form(self):
        """The third one is no engine's answer, whatever the name of the first event."""
        body = event("a", 1, ROLE) + event("b", 2, TOKEN) + event("c", 2, TOKEN) + DONE
        sent = event("b", 2, ROLE) + event("b", 2, TOKEN) + event("b", 2, TOKEN) + DONE
        self.assertNotIn(digest(sent)["hash"], [g["hash"] for g in as_sent(CHAT, body)])

    def test_a_ping_before_a_message_may_be_left_out(self):
        message = b'event: message_start\ndata: {"type":"message_start"}\n\n'
        got = as_sent(MESSAGES, b'event: ping\ndata: {"type": "ping"}\n\n' + message)
        self.assertEqual([g["hash"] for g in got], [digest(message)["hash"]])
        self.assertEqual(as_sent(MESSAGES, message), [])

    def test_bodies_that_are_no_streams_have_no_other_form(self):
        for body in (b"", b"{}", b'{"id":"a"}', b"data: [DONE]\n\n", b"data: {\n\ndata: {\n\n"):
            self.assertEqual(as_sent(CHAT, body), [], body)


if __name__ == "__main__":
    unittest.main()
