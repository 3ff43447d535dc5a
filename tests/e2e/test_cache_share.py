"""The share of prompts served from cache, as engines report it: two counters with one denominator."""

import json
import re
import unittest

from lib import Case, wait_for
from test_engines import CHAT, FAST, message, words

PROMPT = words("share", 400)


def chat(messages, **more):
    return {"model": "sim", "max_tokens": 4, "messages": messages, **more}


def counted(router, what):
    """{(replica, model): tokens}"""
    found = {}
    for name, value in router.metrics().items():
        m = re.fullmatch(r'grapevine_answered_%s_tokens_total\{replica="([^"]*)"'
                         r'(?:,model="([^"]*)")?\}' % what, name)
        if m:
            found[m.group(1), m.group(2)] = value
    return found


class Share(Case):
    def ask(self, r, path, body):
        c = self.client(r)
        got = c.post(path, body)
        c.close()
        self.assertEqual(got.status, 200, got)
        return got

    def events(self, got):
        return [json.loads(line[6:]) for line in got.body.decode().split("\n")
                if line.startswith("data: {")]

    def told_openai(self, usage):
        return (usage["prompt_tokens"], (usage["prompt_tokens_details"] or {})["cached_tokens"])

    def all_forms(self, r, model):
        """Asks the same prompt in every form, twice; returns each answer's usage."""
        told = []
        for _ in range(2):
            got = self.ask(r, CHAT, chat([message("user", PROMPT)], model=model))
            told.append(self.told_openai(got.json["usage"]))
            got = self.ask(r, "/v1/completions", {"model": model, "max_tokens": 4,
                                                  "prompt": PROMPT})
            told.append(self.told_openai(got.json["usage"]))
            got = self.ask(r, CHAT, chat([message("user", PROMPT)], model=model, stream=True,
                                         stream_options={"include_usage": True}))
            told.append(self.told_openai(self.events(got)[-1]["usage"]))
            got = self.ask(r, "/v1/messages", {"model": model, "max_tokens": 4, "messages": [
                message("user", PROMPT)]})
            told.append(self.told_anthropic(got.json["usage"]))
            got = self.ask(r, "/v1/messages", {"model": model, "max_tokens": 4, "stream": True,
                                               "messages": [message("user", PROMPT)]})
            usage = {}
            for e in self.events(got):
                usage.update(e.get("usage", e.get("message", {}).get("usage", {})))
            told.append(self.told_anthropic(usage))
            got = self.ask(r, "/v1/responses", {"model": model, "max_output_tokens": 4,
                                                "input": PROMPT})
            usage = got.json["usage"]
            told.append((usage["input_tokens"], usage["input_tokens_details"]["cached_tokens"]))
        return told

    def told_anthropic(self, usage):
        return (usage["input_tokens"] + usage["cache_read_input_tokens"] +
                usage.get("cache_creation_input_tokens", 0), usage["cache_read_input_tokens"])

    def test_the_counters_equal_the_usage_that_engines_report(self):
        engines = {"a": self.sim(*FAST, "--model", "a"), "b": self.sim(*FAST, "--model", "b")}
        r = self.router([e.url for e in engines.values()], "--ask-usage", "off", wait_up=False)
        wait_for(lambda: {"a", "b"} <= {m["id"] for m in r.get("/v1/models").json.get("data", [])},
                 "the models")
        wanted = {"prompt": {}, "cached": {}}
        for model, engine in engines.items():
            told = self.all_forms(r, model)
            self.assertGreater(told[-1][1], 0)  # there were hits
            for i, what in enumerate(("prompt", "cached")):
                wanted[what][engine.name, model] = sum(t[i] for t in told)
            # A stream without a request for usage reports none, and counts nowhere.
            self.ask(r, CHAT, chat([message("user", PROMPT)], model=model, stream=True))
        r.quiet()
        got = {what: counted(r, what) for what in wanted}
        self.assertEqual(got, wanted)
        for key, prompt in got["prompt"].items():
            self.assertLess(got["cached"][key], prompt)

    def test_usage_without_cached_tokens_is_not_counted(self):
        e = self.sim(*FAST, "--prompt-tokens-details", "off")
        r = self.router([e.url], wait_up=False)
        wait_for(lambda: r.admin("GET", "/readyz").status == 200, "ready")
        for path, body in ((CHAT, chat([message("user", PROMPT)])),
                           ("/v1/messages", {"model": "sim", "max_tokens": 4, "messages": [
                               message("user", PROMPT)]})):
            self.ask(r, path, body)
        r.quiet()
        self.assertEqual((counted(r, "prompt"), counted(r, "cached")), ({}, {}))

    def test_sglangs_native_api_always_reports_cached_tokens(self):
        e = self.sim(*FAST, "--engine", "sglang", "--model", "sim")
        r = self.router([e.url], wait_up=False)
        wait_for(lambda: {m["id"] for m in r.get("/v1/models").json.get("data", [])} == {"sim"}, "models")
        told = []
        for _ in range(2):
            got = self.ask(r, "/generate", {"text": PROMPT,
                                            "sampling_params": {"max_new_tokens": 4}})
            told.append(got.json["meta_info"])
        r.quiet()
        # The request names no model.
        self.assertEqual(counted(r, "prompt"),
                         {(e.name, None): sum(t["prompt_tokens"] for t in told)})
        self.assertEqual(counted(r, "cached"),
                         {(e.name, None): sum(t["cached_tokens"] for t in told)})
        self.assertGreater(told[1]["cached_tokens"], 0)

    def test_a_removed_replica_leaves_the_metric(self):
        e = self.sim(*FAST)
        r = self.router([e.url], wait_up=False)
        wait_for(lambda: {m["id"] for m in r.get("/v1/models").json.get("data", [])} == {"sim"}, "models")
        self.ask(r, CHAT, chat([message("user", PROMPT)]))
        r.quiet()
        before = counted(r, "prompt")
        self.assertEqual(list(before), [(e.name, "sim")])
        self.assertEqual(r.admin("DELETE", "/replicas?replica=" + e.name).status, 200)
        self.assertEqual(counted(r, "prompt"), {})
        self.assertEqual(r.admin("POST", "/replicas?replica=" + e.name).status, 200)
        self.assertEqual(counted(r, "prompt"), before)


if __name__ == "__main__":
    unittest.main()
