"""The engine simulator's journal of its requests (jepsen-lite/README.md has the format)."""

import hashlib
import json
import os
import tempfile
import time

from lib import request, wait_for
from test_engine_sim import JSON, TEXT, SimCase, chat


class Journal(SimCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "journal.jsonl")
        self.arguments += ("--control", "--journal", self.path)
        super().setUp()

    def rows(self, f=None):
        with open(self.path, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        return [r["value"] for r in rows if f in (None, r["f"])]

    def ask(self, op, **more):
        return self.c.post("/v1/chat/completions", chat(TEXT, **more), [("X-Jepsen-Op", op)])

    def end(self, op):
        return wait_for(
            lambda: [v for v in self.rows("end") if v["op"] == op], "the end of " + op)[0]

    def test_complete_answers_are_recorded(self):
        for op, stream in (("c1-1", False), ("c1-2", True)):
            body = self.ask(op, stream=stream).body
            end = self.end(op)
            self.assertEqual((end["how"], end["status"], end["bytes"]), ("whole", 200, len(body)))
            self.assertEqual(end["hash"], hashlib.sha256(body).hexdigest())
        first, second = self.rows("first")
        self.assertEqual(first["cached_tokens"], 0)
        self.assertGreater(second["cached_tokens"], 400)
        self.assertEqual(first["prompt_tokens"], second["prompt_tokens"])
        self.assertEqual([v["path"] for v in self.rows("request")], ["/v1/chat/completions"] * 2)
        with open(self.path, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        self.assertEqual([r["f"] for r in rows], ["begin"] + ["request", "first", "end"] * 2)
        self.assertEqual([r["t"] for r in rows], sorted(r["t"] for r in rows))
        self.assertLess(rows[-1]["t"], time.monotonic())

    def test_answers_are_also_recorded_without_usage(self):
        """A router asks for usage if its client did not, and removes it from the answer."""
        wanted = self.ask("with", stream=True, stream_options={"include_usage": True}).body
        cut = [e for e in wanted.split(b"\n\n") if b'"choices":[],"usage":' not in e]
        self.assertEqual(len(cut), wanted.count(b"\n\n"))
        fingerprint = b',"system_fingerprint":"vllm-0.32.0-39c297dc"'
        self.assertEqual(cut[-3][-2:], b"]}")
        cut[-3] = cut[-3][:-1] + fingerprint + b"}"  # without an event of usage, the last one has it
        cut = b"\n\n".join(cut)
        end = self.end("with")
        self.assertEqual(end["bytes"], len(wanted))
        self.assertEqual(end["plain"], {"bytes": len(cut), "hash": hashlib.sha256(cut).hexdigest()})
        without = self.ask("without", stream=True).body
        self.assertTrue(without.split(b"\n\n")[-3].endswith(b"]" + fingerprint + b"}"), without)
        self.assertNotIn("plain", self.end("without"))

    def test_failed_answers_are_recorded(self):
        for op, mode, how, status in (
                ("f1", "status_500", "refused", 500), ("f2", "full", "refused", 503),
                ("f3", "reset_mid_stream", "failed", 200), ("f4", "end", "failed", 200),
                ("f5", "error", "failed", 200), ("f6", "garbage", "failed", 200)):
            self.fail_by(mode, count=1, after_chunks=1)
            c = self.client(self.one)
            ask = chat(stream=True, max_tokens=100000)  # enough that no pause of the engine sends them as one piece
            c.send(request("POST", "/v1/chat/completions", json.dumps(ask).encode(), [JSON, ("x-jepsen-op", op)]))
            end = self.end(op)
            self.assertEqual((end["how"], end["status"]), (how, status), op)
        self.assertEqual(self.c.post("/v1/chat/completions", {}, [("x-jepsen-op", "f7")]).status, 400)
        self.assertEqual(self.end("f7")["how"], "refused")

    def test_requests_that_their_client_left_are_recorded(self):
        c = self.client(self.one)
        ask = chat(stream=True, max_tokens=100000)
        c.send(request("POST", "/v1/chat/completions", json.dumps(ask).encode(), [JSON, ("x-jepsen-op", "l1")]))
        wait_for(lambda: self.rows("first"), "a first token")
        self.assertEqual(self.rows("end"), [])
        c.close()
        end = self.end("l1")
        self.assertEqual((end["how"], end["status"]), ("left", 200))
        self.assertGreater(end["bytes"], 0)

    def test_requests_without_work_are_recorded_if_named(self):
        self.c.ask("GET", "/v1/models")
        self.c.ask("GET", "/v1/models", headers=[("x-jepsen-op", "named")])
        self.assertEqual([(v["op"], v["path"]) for v in self.rows("request")], [("named", "/v1/models")])
        self.assertEqual(self.end("named")["how"], "whole")

    def test_deeds_are_recorded(self):
        self.assertEqual(self.c.ask("POST", "/sim/deed", headers=[("x-jepsen-op", "d1")]).status, 200)
        end = self.end("d1")
        self.assertEqual((end["how"], end["status"], end["bytes"]), ("whole", 200, 0))

    def test_the_journal_continues_after_a_restart(self):
        """All lines of a killed engine stay; its request numbers are not used again."""
        self.ask("before")
        wait_for(lambda: self.rows("end"), "the end, a moment after the client has the answer")
        self.one.kill()
        self.one = self.sim(*self.arguments)
        self.c = self.client(self.one)
        self.ask("after")
        wait_for(lambda: len(self.rows("end")) == 2, "the other end")
        self.one.call("POST", "/sim/restart")
        with open(self.path, encoding="utf-8") as file:
            fs = [json.loads(line)["f"] for line in file]
        life = ["begin", "request", "first", "end"]
        self.assertEqual(fs, life + life + ["restart"])
        before, after = self.rows("request")
        self.assertGreater(after["request"], before["request"])
