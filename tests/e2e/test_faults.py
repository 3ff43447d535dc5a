"""The fault driver (`make faults`) in its short form: a few seconds, a few rows, no check of speed."""

import asyncio
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "faults"))

import faults  # noqa: E402
import load  # noqa: E402
import rows  # noqa: E402

SECONDS, RATE = 3, 40
ROWS = [("500", 1), ("drain", 1), ("kill", 3), ("health-slow", 1), ("resets", 3)]  # and the number of routers


class Short(unittest.TestCase):
    def test_rows(self):
        for name, routers in ROWS:
            with self.subTest(row=name, routers=routers):
                row = next(r for r in rows.ROWS if r.name == name)
                m = asyncio.run(faults.run_row(row, routers, SECONDS, RATE, 1, warm=0.5))
                self.assertGreater(m["offered"], 60)
                self.assertLessEqual(m["upstream"], row.upstream_max)
                self.assertEqual((m["avoidable"], m["wrong"], m["hangs"]), (0, 0, 0), m)


class Judgement(unittest.TestCase):
    """The driver's definition of a failure."""

    def result(self, path, stream, data):
        r = load.Result(path, stream, 0, "")
        r.status = 200
        for block in data.strip().encode().split(b"\n\n"):
            load.take_event(r, block)
        return r

    def test_streams(self):
        first = 'data: {"id":"a","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'
        token = 'data: {"id":"a","choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
        done = "data: [DONE]\n\n"
        error = 'data: {"error":{"message":"m","code":500}}\n\n'
        for data, tokens, wanted in ((first + token + done, 1, ""), (first + token, 1, "no last event"),
                                     (first + done, 0, "no token"), (first + first + token + done, 1, "mixed"),
                                     (first + token + token.replace('"a"', '"b"') + done, 2, "mixed"),
                                     (first + error + done, 0, "error event"),
                                     (first + token + error + done, 1, "error event")):
            r = self.result(load.CHAT, True, data)
            self.assertEqual((r.tokens, load.judge(r)), (tokens, wanted), data)

    def test_other_apis(self):
        r = self.result(load.MESSAGES, True,
                        'event: message_start\ndata: {"type":"message_start","message":{}}\n\n'
                        'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n'
                        'event: message_stop\ndata: {"type":"message_stop"}\n\n')
        self.assertEqual(load.judge(r), "error event")
        r = self.result(load.GENERATE, True, 'data: {"text":"","meta_info":{"finish_reason":{"type":"abort",'
                                             '"status_code":503}}}\n\ndata: [DONE]\n\n')
        self.assertEqual(load.judge(r), "error event")


if __name__ == "__main__":
    unittest.main()
