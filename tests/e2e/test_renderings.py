"""Engines that show the model another text than clients send, and clients whose prompts change in parts that no model
sees: conversations stay where their prefix is."""

import json
import threading
import unittest

from lib import HOST, Case, Engine, answer_json, wait_for
from lib_cluster import Clustered
from test_daemon import run

TOKEN, BLOCK = 4, 16  # bytes of a token, tokens of a block of an engine's cache
ENGINES, SESSIONS, TURNS = 3, 9, 8
CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"


def text_of(content):
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


class Renderer(Engine):
    """An engine with a prefix cache that forgets nothing, and a template of the test's own: `render` makes the
    text that the model sees of a request's body."""

    def __init__(self, render, **how):
        super().__init__(**how)
        self.render, self.held, self.handler = render, set(), self.answer

    def answer(self, asked):
        body = asked.json
        text = self.render(body)
        size = TOKEN * BLOCK
        blocks = [hash(text[:end]) for end in range(size, len(text) + 1, size)]
        with self.lock:
            cached = 0
            while cached < len(blocks) and blocks[cached] in self.held:
                cached += 1
            self.held.update(blocks)
            prompt = len(text) // TOKEN
            cached = min(cached * BLOCK, max(prompt - 1, 0))
        if asked.path == MESSAGES:
            asked.send(answer_json({"type": "message", "role": "assistant", "content": [{"type": "text", "text": "ok"}],
                                    "model": "m", "stop_reason": "end_turn", "usage": {
                                        "input_tokens": prompt - cached, "output_tokens": 2,
                                        "cache_read_input_tokens": cached}}))
        else:
            asked.send(answer_json({"object": "chat.completion", "model": "m", "choices": [
                {"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": prompt, "completion_tokens": 2, "total_tokens": prompt + 2,
                          "prompt_tokens_details": {"cached_tokens": cached}}}))


def words(seed, count):
    return " ".join("%s%d" % (seed, i) for i in range(count)) + "\n"


def system_text(body):
    if "system" in body:
        return text_of(body["system"])
    return text_of(body["messages"][0]["content"])


def rest(body):
    messages = body["messages"] if "system" in body else body["messages"][1:]
    return "".join("<%s>%s" % (m["role"], text_of(m["content"])) for m in messages)


def tools(body):
    return json.dumps(body.get("tools", []))


def as_sent(body):
    return tools(body) + system_text(body) + rest(body)


def without_line(body):
    return tools(body) + system_text(body).partition("\n")[2] + rest(body)


def without_header(body):
    """As vLLM reads /v1/messages."""
    system = [b for b in body["system"] if not b["text"].startswith("x-anthropic-billing-header")]
    return as_sent({**body, "system": system})


def sorted_tools(body):
    return json.dumps(sorted(body.get("tools", []), key=json.dumps)) + system_text(body) + rest(body)


def late_first(body):
    """Later system messages come first, as vLLM does if the template accepts none elsewhere."""
    first = 0 if "system" in body else 1
    late = "".join(text_of(m["content"]) for m in body["messages"][first:] if m["role"] == "system")
    said = [m for m in body["messages"][first:] if m["role"] != "system"]
    return tools(body) + system_text(body) + late + "".join("<%s>%s" % (m["role"], text_of(m["content"])) for m in said)


def either(body):
    return late_first(body) if "system" in body else without_line(body)


class Fleet:
    """Asks in turns, one conversation after the other, through the routers in turn."""

    def __init__(self, case, routers, make, agent, path=CHAT):
        self.case, self.make, self.path = case, make, path
        self.clients = [case.client(r) for r in routers]
        self.headers = (("User-Agent", agent),)
        self.asked = 0
        self.talks = [[] for _ in range(SESSIONS)]

    def turn(self, session):
        talk = self.talks[session]
        talk.append({"role": "user", "content": words("s%dt%d" % (session, len(talk)), 200)})
        client = self.clients[self.asked % len(self.clients)]
        got = client.post(self.path, self.make(self.asked, talk), self.headers)
        self.case.assertEqual(got.status, 200, got)
        self.asked += 1
        talk.append({"role": "assistant", "content": "ok"})

    def talk_on(self, turns):
        for _ in range(turns):
            for session in range(SESSIONS):
                self.turn(session)


SYSTEM = words("system", 400)
TOOLS = [{"type": "function", "function": {"name": "tool%d" % i, "description": words("d%d" % i, 30),
                                           "parameters": {"type": "object"}}} for i in range(6)]


def changing_line(n, talk):
    return {"model": "m", "max_tokens": 4, "messages": [
        {"role": "system", "content": "trace %d of this request\n%s" % (n * 7919, SYSTEM)}] + talk}


def constant_line(n, talk):
    return changing_line(0, talk)


def billing_header(n, talk):
    return {"model": "m", "max_tokens": 4, "messages": talk, "tools": [], "system": [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.197.%03x; cc_entrypoint=cli; cch=%05x;" %
         (n % 4096, n * 7919 % 2**20)},
        {"type": "text", "text": "You are a client.", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": SYSTEM}]}


def shuffled_tools(n, talk):
    first = n % len(TOOLS)
    return {**constant_line(n, talk), "tools": TOOLS[first:] + TOOLS[:first]}


def noted(talk):
    """A system message after each second user message, as Claude Code sends them."""
    for i, message in enumerate(talk):
        yield message
        if i % 4 == 2:
            yield {"role": "system", "content": words("note%d" % i, 50)}


def notes(n, talk):
    return {"model": "m", "max_tokens": 4, "system": [{"type": "text", "text": SYSTEM}], "messages": list(noted(talk))}


def notes_in_chat(n, talk):
    return {"model": "m", "max_tokens": 4, "messages": [{"role": "system", "content": SYSTEM}] + list(noted(talk))}


def off(routers, asked):
    """Wrong beliefs about cached tokens, in both directions, as shares of the prompts."""
    def ended():
        return {(r, d["request"]): d for r in routers for d in
                r.admin("GET", "/decisions?n=512&ended=1").json["decisions"]}
    before = ended()
    asked()
    new = [d for key, d in ended().items() if key not in before]
    prompt = sum(d["outcome"]["prompt_tokens"] for d in new)
    more = [d["cached_tokens"] - d["outcome"]["cached_tokens"] for d in new]
    return sum(m for m in more if m > 0) / prompt, -sum(m for m in more if m < 0) / prompt


class Rendering(Case):
    """Beliefs about cached tokens are right, in both directions. The load decides about the conversations' places; a
    router that reads prompts as engines do finds them there."""

    def fleet(self, render, make, agent="strange-client/1.0", path=CHAT):
        router = self.router([self.keep(Renderer(render)) for _ in range(ENGINES)])
        return router, Fleet(self, [router], make, agent, path)

    def explained(self, router, body):
        got = router.admin("POST", "/explain", json.dumps(body).encode())
        self.assertEqual(got.status, 200, got)
        return got.json

    def predicts(self, render, make, turns=TURNS // 2, **how):
        router, fleet = self.fleet(render, make, **how)
        fleet.talk_on(turns)
        over, under = off([router], lambda: fleet.talk_on(TURNS // 2))
        self.assertLess(over, 0.05)
        self.assertLess(under, 0.1)
        return router, fleet

    def test_a_changing_first_line_that_no_model_sees_is_learned(self):
        router, fleet = self.predicts(without_line, changing_line)
        self.assertEqual(router.metric("renderings_learned_total"), 1)
        self.assertEqual(router.metric("client_kinds"), 1)
        body = changing_line(12345, fleet.talks[0] + [{"role": "user", "content": "and now?"}])
        explained = self.explained(router, body)
        self.assertEqual(explained["rendering"]["text"], "the first line does not count")
        self.assertEqual(explained["rendering"]["client"], "strange-client")
        self.assertEqual(explained["rendering"]["from"], "cached tokens that answers report")
        self.assertGreater(max(r["cached_tokens"] for r in explained["replicas"]), 1000)
        told = run("gvctl", "--admin", "http://%s:%d" % (HOST, router.admin_port), "explain",
                   stdin=json.dumps(body).encode())[1]
        self.assertIn("How the router reads prompts of strange-client (chat): the first line does not count", told)

    def test_a_changing_first_line_that_counts_is_not_left_out(self):
        router, fleet = self.predicts(as_sent, changing_line)
        self.assertEqual(router.metric("renderings_learned_total"), 0)
        explained = self.explained(router, changing_line(12345, fleet.talks[0]))
        self.assertEqual(explained["rendering"]["text"], "")
        self.assertLess(max(r["cached_tokens"] for r in explained["replicas"]), 100)

    def test_claude_codes_header_needs_no_learning(self):
        router, _ = self.predicts(without_header, billing_header, turns=1, agent="claude-cli/2.1.197 (external, cli)",
                                  path=MESSAGES)
        self.assertEqual(router.metric("renderings_learned_total"), 0)

    def test_tools_that_the_engine_sorts_are_learned(self):
        router, fleet = self.predicts(sorted_tools, shuffled_tools)
        explained = self.explained(router, shuffled_tools(4, fleet.talks[0]))
        self.assertEqual(explained["rendering"]["text"], "the order of tools does not count")

    def test_later_system_messages_that_the_engine_moves_are_learned(self):
        for make, path in (notes, MESSAGES), (notes_in_chat, CHAT):
            router, fleet = self.predicts(late_first, make, path=path)
            explained = self.explained(router, make(0, fleet.talks[0]))
            self.assertEqual(explained["rendering"]["text"], "later system messages come first")

    def test_later_system_messages_that_stay_are_left_in_place(self):
        router, _ = self.predicts(as_sent, notes, path=MESSAGES)
        self.assertEqual(router.metric("renderings_learned_total"), 0)


class Routers(Clustered):
    def test_three_routers_read_prompts_alike(self):
        engines = [self.keep(Renderer(either)) for _ in range(ENGINES)]
        routers = self.cluster(3, [e.url for e in engines])
        for r in routers:
            r.wait_up(ENGINES)
        fleet = Fleet(self, routers, changing_line, "strange-client/1.0")
        fleet.talk_on(TURNS // 2)
        def texts():
            for _ in routers: # a router looks when it is asked
                fleet.turn(0)
            body = json.dumps(changing_line(1, fleet.talks[0])).encode()
            return {r.admin("POST", "/explain", body).json["rendering"]["text"] for r in routers}
        wait_for(lambda: texts() == {"the first line does not count"}, "all routers to read alike")
        over, under = off(routers, lambda: fleet.talk_on(TURNS // 2))  # the load decides about their places
        self.assertLess(over, 0.1)
        self.assertLess(under, 0.1)
        self.assertEqual(sum(r.metric("renderings_learned_total") +
                             r.metric("renderings_adopted_total") for r in routers), 3)
        # Another client of the same engines, whose later system messages they move.
        fleet = Fleet(self, routers, notes, "other-client/1.0", MESSAGES)
        # The number of turns depends on their places.
        wait_for(lambda: max(off(routers, lambda: fleet.talk_on(TURNS // 2))) < 0.1, "all routers to read the other's alike")


if __name__ == "__main__":
    unittest.main()
