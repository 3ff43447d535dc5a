"""gvctl against a scripted admin port: what it asks, what it prints of each answer, and what it says when there is
none: a port that refuses, hangs, closes, or talks of something else."""

import json
import os
import re
import socket
import tempfile
import unittest

from lib import HOST, Case, answer, answer_json, closed_port
from lib_cluster import gvctl

NODE = {"ready": True, "registry": "1", "whole_index": "2", "log": "3", "reports": "4", "index": []}
# Command -> method, target, an answer, and what it makes of that.
SHOWN = {
    ("replicas",): ("GET", "/replicas", [
        {"name": "a:1", "health": "up", "why": "", "engine": "vllm", "sources": ["settings"], "chosen": 7,
         "restarts": 2, "models": {"from": "engine", "count": 3},
         "load": {"requests": 4, "requests_of_others": 5, "queue_s": 0.25},
         "cache": {"tokens": 100000, "present_bytes": 200000}},
        {"name": "b:2", "health": "up", "avoided": True, "why": "errors", "why_for_ms": 4100, "wish": "added"},
        {"name": "c:3", "health": "down", "why": "down", "probes_refused": ["/health"], "router": "r9"}],
        [r"a:1 +up +- +vllm +3 +settings +7 +4 +5 +0\.250 +0 +100k +50k +2\n", r"b:2 +avoided +errors:4\.1s +",
         r"c:3 is a Grapevine router \(r9\).*take it out\s+of the replicas", r"c:3 refuses the router's /health",
         r"--replica-api-key-file FILE"]),
    ("sources",): ("GET", "/sources", [
        {"kind": "file", "name": "list.yaml", "entries": 3, "draining": 1, "failures": 2, "age_s": 1.5,
         "error": "no such file"},
        {"kind": "dns", "name": "x.y", "entries": 0, "empty": "no address"}],
        [r"file +3 +1 +2 +1\.5 +list\.yaml\n +no such file", r"dns +0 +0 +0 +never +x\.y\n +empty: no address\n"]),
    ("queue",): ("GET", "/queue", {
        "requests_in_flight": 12, "requests_max": 64, "queue_length": 2, "queue_max": 9, "queue_timeout_ms": 1500,
        "waiting": [{"model": "m", "requests": 2, "longest_ms": 700, "for": "a replica"}]},
        [r"in flight +12 of 64 \(requests-max\)", r"waiting +2 of 9 \(queue-max\), for 1\.5 s at most",
         r"m +2 +0\.7  a replica"]),
    ("explain",): ("POST", "/explain", {
        "policy": "cache_aware", "prompt_tokens": 100, "choice": "a:1", "displaced_weight": 0.5, "decode_weight": 1,
        "replicas": [{"replica": "a:1", "cached_tokens": 64, "cost_s": 0.125, "due": True},
                     {"replica": "b:2", "cost_s": 0.5}],
        "left_out": [{"replica": "c:3", "why": "it is down"}]},
        [r"policy cache_aware, about 100 prompt tokens",
         r"> a:1 +64 .* 0\.125\n  b:2 +0 .* 0\.500\n- c:3 +it is down\n",
         r"0\.5 x displaced \+ 1 x decode;", r"a:1 is slow and has no line, the cheapest has one"]),
    ("explain", "--all"): ("POST", "/explain?all=1", {"nodes": {
        "r1": {"choice": "a:1", "replicas": [{"replica": "a:1", "cost_s": 0.125, "cached_tokens": 64}]},
        "r2": {"error": "timeout"}}},
        [r"a:1 +> +0\.125 +64 "]),
    ("members",): ("GET", "/members", {"members": [
        {"name": "r1", "state": "alive", "self": True, "ready": True, "address": "10.0.0.1:7"},
        {"name": "r2", "state": "alive", "ready": True, "session": False, "address": "10.0.0.2:7"},
        {"name": "r3", "state": "dead", "hints": "it was killed"}], "stats": {}},
        [r"\* r1 +alive +10\.0\.0\.1:7", r"  r2 +unmet ", r"  r3 +dead ", r"r3: it was killed"]),
    ("convergence",): ("GET", "/convergence", {"equal": True, "nodes": {"r1": NODE, "r2": NODE}},
                       [r"r1 +1 +2 +3 +4 ", r"equal: all 2 living routers hold the same state"]),
    ("poison",): ("GET", "/poison", [
        {"hash": "00ff", "state": "refused", "seconds_ago": 5, "seconds_left": 60, "refused": 3,
         "replicas": ["a:1", "b:2"]}],
        [r"00ff +refused +5 s +60 s +3  a:1 b:2"]),
    ("ready",): ("GET", "/readyz", "ok", [r"^\"ok\"\n$"]),
    ("alive",): ("GET", "/healthz", "ok", [r"^\"ok\"\n$"]),
    ("metrics",): ("GET", "/metrics", "x 1", [r"x 1"]),
    ("config",): ("GET", "/config", {"policy": "session"}, [r'^{"policy": "session"}\n$']),
    ("log-level", "debug"): ("POST", "/log-level?level=debug", {"level": "debug"}, ["debug"]),
    ("drain", "a:1"): ("POST", "/drain?replica=a:1", {"health": "draining"}, ["draining"]),
    ("undrain", "a:1@2"): ("POST", "/undrain?replica=a:1%402", {"health": "up"}, ["up"]),
    ("add", "a&b c:1", "--engine", "vllm"): ("POST", "/replicas?replica=a%26b%20c:1&engine=vllm", {"ok": 1}, ["ok"]),
    ("remove", "a:1"): ("DELETE", "/replicas?replica=a:1", {"ok": 1}, ["ok"]),
    ("forget", "00ff"): ("DELETE", "/poison?hash=00ff", {"ok": 1}, ["ok"]),
}
TABLES = [c for c in SHOWN if c[0] in ("replicas", "sources", "queue", "explain", "members", "convergence", "poison")]


class Gvctl(Case):
    def setUp(self):
        super().setUp()
        self.port = self.engine()

    def ask(self, *command, says=None, **how):
        if says is not None:
            self.port.clear()
            self.port.closes(says)
        return gvctl(*command, admin=self.port.port, **how)

    def fails(self, command, says, *words):
        """It exits with 1, and says why and what to do next on stderr alone."""
        status, out, err = self.ask(*command, says=says)
        self.assertEqual((status, out), (1, ""), (command, says, err))
        self.assertRegex(err, r"^gvctl: .*\n")
        for word in words:
            self.assertIn(word, err, (command, says))

    def test_each_command_asks_and_shows(self):
        status, text, _ = gvctl("--help")
        named = set(re.findall(r"(?m)^  ([a-z]\S*)", text)) - {"keygen"}
        self.assertEqual((status, named), (0, {c[0] for c in SHOWN}), "every command is tried here")
        for command, (method, target, said, words) in SHOWN.items():
            status, out, err = self.ask(*command, says=answer_json(said), stdin=b'{"model":"m"}')
            self.assertEqual((status, err), (0, ""), command)
            asked = self.port.requests[0]
            self.assertEqual((asked.method, asked.target), (method, target))
            for word in words:
                self.assertRegex(out, word)
            status, out, err = self.ask(*command, "--json", says=answer_json(said), stdin=b'{"model":"m"}')
            self.assertEqual((status, json.loads(out), err), (0, said, ""), command)

    def test_what_it_sends_along(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "token")
            with open(path, "w") as f:
                f.write("sesame\n")
            self.ask("explain", "--session", "kim", "--token-file", path, says=answer_json(SHOWN[("explain",)][2]),
                     stdin=b"a body")
        asked = self.port.requests[0]
        self.assertEqual((asked.get("authorization"), asked.get("x-grapevine-session"), asked.body),
                         ("Bearer sesame", "kim", b"a body"))

    def test_nobody_listens(self):
        for command in SHOWN:
            status, out, err = gvctl(*command, admin=closed_port())
            self.assertEqual((status, out), (1, ""), command)
            self.assertIn("Connection refused\n       Is grapevine running? --admin names its", err)

    def test_nobody_answers(self):
        for accepts in (True, False):  # the kernel takes the connection, and it is read or not
            if accepts:
                self.port.handler = lambda asked: asked.sock.recv(1)
                port = self.port.port
            else:
                silent = socket.create_server((HOST, 0))
                self.addCleanup(silent.close)
                port = silent.getsockname()[1]
            for command in (("replicas",), ("ready",), ("convergence",), ("drain", "a:1")):
                status, out, err = gvctl(*command, "--timeout", "1", admin=port)
                self.assertEqual((status, out), (1, ""))
                self.assertIn("did not answer within 1 s\n       --timeout SECONDS waits longer.", err)

    def test_an_answer_that_ends_before_its_end_is_none(self):
        """The first half of /metrics was shown with exit 0: who pipes it into a check believed it."""
        for command, (_, _, said, _) in SHOWN.items():
            whole = answer_json(said)
            for cut in (1, len(whole) // 2, len(whole) - 1):
                self.fails(command, whole[:cut], "was cut off", "--admin names its admin-listen address")
            self.fails(command, b"", "the peer has closed", "--admin names its admin-listen address")

    def test_what_is_no_http(self):
        for said in (b"SSH-2.0-OpenSSH_9.2\r\n", b"220 mail ESMTP\r\n\r\n", bytes(range(256)), b"\0" * 100000):
            for command in (("replicas",), ("ready",), ("convergence",)):
                self.fails(command, said, "cannot be read: the input is malformed", "Is that the admin port")

    def test_other_json_and_none(self):
        """It ended with 1 and not a word."""
        for command in TABLES:
            for said in (answer(200, b"<html>"), answer(200, b""), answer(200, b'{"a":'), answer_json(7),
                         answer_json(None),
                         answer_json({"a": []} if command[0] in ("replicas", "sources", "poison") else [])):
                self.fails(command, said, "is not what this command shows", "--json shows it as it came")
            rows = [1, "x", None, {}, [], {"name": 7, "load": [], "models": "m", "sources": 1, "replicas": [None, 7]}]
            for said in (rows, {"members": rows, "waiting": rows, "replicas": rows, "left_out": rows,
                                "nodes": {str(i): row for i, row in enumerate(rows)}, "stats": rows, "differ": rows}):
                status, _, err = self.ask(*command, says=answer_json(said))
                self.assertIn(status, (0, 1), (command, said, err))

    def test_a_refusal_is_told_in_its_words(self):
        for command in SHOWN:
            self.fails(command, answer_json({"error": {"message": "Bring a token: --token-file."}}, 401),
                       "gvctl: Bring a token: --token-file. (401)")
            self.fails(command, answer(503, b"joining: wait\n"), "gvctl: 503: joining: wait")
            self.fails(command, answer(500, b""), "gvctl: 500: an answer without a word")

    def test_it_is_told_how_it_is_used(self):
        for command, word in (((), "usage: gvctl"), (("typo",), 'no command "typo"; see gvctl --help'),
                              (("drain",), "drain takes one argument; see gvctl --help"),
                              (("replicas", "a:1"), "replicas takes no argument"),
                              (("replicas", "--all"), "and not that option"),
                              (("replicas", "--timeout", "0"), '"0" is no number from 1 on'),
                              (("--token-file", "/nowhere", "ready"), 'cannot read "/nowhere"')):
            status, out, err = self.ask(*command)
            self.assertEqual((status, out), (2, ""), command)
            self.assertIn(word, err)
        for admin, word in (("nonsense", "is not http://HOST:PORT"), ("https://a:1", "is not http://HOST:PORT"),
                            ("a:99999", "is not")):
            status, out, err = gvctl("--admin", admin, "ready")
            self.assertEqual((status, out), (1, ""))
            self.assertIn(word, err)
        status, out, err = self.ask("explain", "/nowhere/request.json")
        self.assertEqual((status, out), (1, ""))
        self.assertIn('cannot read "/nowhere/request.json"', err)


if __name__ == "__main__":
    unittest.main()
