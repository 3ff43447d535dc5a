"""docs/admin-api.md against real answers: every call has its section, and each example has the fields that the answer
has, no more and no less."""

import json
import re
import socket
import threading
import unittest

from lib import Cut, wait_for
from lib_cluster import Clustered
from lib_deploy import text

PAGE = "docs/admin-api.md"
NAMED = {"nodes", "vector", "frames_in", "frames_out", "not_asked", "hears", "by_replica"}  # objects whose keys are names, not fields
PROMPT = {"model": "sim", "prompt": "some words " * 400, "max_tokens": 400, "ignore_eos": True}
CHAT = {"model": "sim", "messages": [{"role": "user", "content": "some words " * 400}], "max_tokens": 4}
POISON = {"model": "sim", "prompt": [4000000000], "max_tokens": 4}  # kills a simulated SGLang


def fields(value, at=""):
    """{path of a field: whether there is something in it}"""
    found = {}
    if isinstance(value, dict):
        for key, inner in value.items():
            path = at + "." + ("*" if at.rpartition(".")[2] in NAMED else key)
            found[path] = found.get(path, False) or inner not in (None, [], {})
            found.update({p: found.get(p, False) or full for p, full in fields(inner, path).items()})
    elif isinstance(value, list):
        for inner in value:
            found.update({p: found.get(p, False) or full for p, full in fields(inner, at).items()})
    return found


def lacks(some, others):
    """Paths that the others do not have, though they have something where these would be."""
    return sorted(p for p in some if p not in others and
                  (p.rpartition(".")[0] == "" or others.get(p.rpartition(".")[0], False)))


def sections():
    """{"GET /replicas": text of its section}"""
    parts = re.split(r"(?m)^### `((?:GET|POST|DELETE) /\S*)`$", text(*PAGE.split("/")))
    return dict(zip(parts[1::2], parts[2::2]))


def calls():
    return ["%s %s%s" % (method, path, "?" + argument.strip('"') if argument != "NULL" else "")
            for method, path, argument in re.findall(
                r'X\(\w+, (\w+), "([^"]*)", (NULL|"[^"]*"),', text("node", "admin", "calls.h"))]


class Page(unittest.TestCase):
    def test_every_call_has_its_section(self):
        self.assertEqual(sorted(sections()), sorted(calls()))

    def test_the_comparison_finds_differences(self):
        self.assertEqual(lacks(fields({"a": 1, "b": {"c": 1}}), fields({"a": 1, "b": {"d": 2}})), [".b.c"])
        self.assertEqual(lacks(fields([{"nodes": {"x": {"c": 1}}}]), fields([{"nodes": {"y": {"c": 1}}}])), [])
        self.assertEqual(lacks(fields({"a": {"c": 1}}), fields({"a": None})), [])


class Answers(Clustered):
    def ask(self, call):
        method, _, target = call.partition(" ")
        body = json.dumps(CHAT).encode() if "explain" in target else None
        return self.router_one.admin(method, target, body)

    def real(self):
        """{call: its answer}, of two routers that have seen something, with one engine of three left."""
        sims = [self.sim("--engine", "sglang", "--output-tokens", "5", "--kv-events", "sglang-0.5.15") for _ in range(3)]
        args = ("--replica-requests-max", "1", "--health-interval", "200ms")
        one = self.router_one = self.node("r1", sims, *args)
        two = self.node("r2", [], *args, join=one)
        for r in (one, two):
            wait_for(lambda: len([x for x in r.admin("GET", "/replicas").json if x["health"] == "up"]) == 3, "all up")
        wait_for(lambda: all(x["events"] for x in one.admin("GET", "/replicas").json), "events")
        one.wait_listed(3)  # else the second engine gets no request that names the model, and nothing counts as poison
        self.client(one).post("/v1/chat/completions", CHAT)
        self.client(one).post("/v1/completions", POISON)
        wait_for(lambda: one.admin("GET", "/poison").json, "poison")
        explained = {c: self.ask(c) for c in calls() if "explain" in c}
        clients = [self.client(one) for _ in range(2)]
        for c in clients:
            threading.Thread(target=self.long, args=(c,), daemon=True).start()
        wait_for(lambda: one.admin("GET", "/queue").json["waiting"], "one that waits")
        wait_for(lambda: [s.running() for s in sims].count(False) == 2, "the end of the two that died")
        left = next(s.name for s in sims if s.running())
        gone = next(s.name for s in sims if not s.running())
        answers = {c: self.ask(c + ("?format=json" if c == "GET /readyz" else ""))
                   for c in calls() if c.startswith("GET") and c != "GET /live"}  # which has no end
        answers.update(explained)
        got = {c: a.json for c, a in answers.items() if a.get("content-type").startswith("application/json")}
        hash_ = got["GET /poison"][0]["hash"]
        for call, target in (("POST /log-level?level=debug", "POST /log-level?level=debug"),
                             ("POST /drain?replica=HOST:PORT", "POST /drain?replica=" + left),
                             ("POST /undrain?replica=HOST:PORT", "POST /undrain?replica=" + left),
                             ("POST /replicas?replica=HOST:PORT", "POST /replicas?replica=127.0.0.1:9"),
                             ("POST /reset-cache?replica=HOST:PORT", "POST /reset-cache?replica=" + left),
                             ("DELETE /replicas?replica=HOST:PORT", "DELETE /replicas?replica=" + gone),
                             ("DELETE /poison?hash=HASH", "DELETE /poison?hash=" + hash_)):
            got[call] = self.ask(target).json
        got["error"] = self.ask("POST /drain?replica=127.0.0.1:1").json
        for c in clients:
            c.sock.shutdown(socket.SHUT_RDWR)
        return got

    @staticmethod
    def long(client):
        try:
            client.post("/v1/completions", PROMPT)
        except (Cut, OSError):
            pass  # the test is over

    def test_the_examples_have_the_fields_of_real_answers(self):
        page, real = sections(), self.real()
        for call in calls():
            example = re.search(r"```json\n(.*?)```", page[call], re.S)
            if call not in real:
                self.assertIsNone(example, call)
                continue
            self.assertIsNotNone(example, call)
            said, got = fields(json.loads(example[1])), fields(real[call])
            self.assertTrue(got or not real[call], call)
            self.assertEqual(lacks(got, said), [], "%s: the page lacks" % call)
            self.assertEqual(lacks(said, got), [], "%s: the answer lacks" % call)
        error = re.search(r"## Errors.*?```json\n(.*?)```", text(*PAGE.split("/")), re.S)[1]
        self.assertEqual(set(fields(json.loads(error))), set(fields(real["error"])))

    def test_fields_that_the_page_explains_are_in_its_examples(self):
        """The fields that its lists explain are in the example above them."""
        for call, section in sections().items():
            example = re.search(r"```json\n(.*?)```", section, re.S)
            for row in re.findall(r"^- ((?:`[\w.]+`(?:, )?)+): ", section, re.M):
                for name in re.findall(r"`([\w.]+)`", row) if example else []:
                    self.assertTrue(any(p.endswith("." + name) for p in fields(json.loads(example[1]))), (call, name))


if __name__ == "__main__":
    unittest.main()
